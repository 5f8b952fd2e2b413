// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.hpp"

#include <doctest/doctest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <future>
#include <string>
#include <vector>

namespace hfd::base {
namespace {

TEST_SUITE("base/thread_pool") {
  TEST_CASE("what is queued is run before the pool ends") {
    std::atomic<int> done{0};
    {
      ThreadPool pool("test", 3);
      CHECK(pool.thread_count() == 3);
      for (int i = 0; i < 1000; ++i) {
        pool.post([&] { done.fetch_add(1); });
      }
    }
    CHECK(done.load() == 1000);
  }

  TEST_CASE("one thread runs tasks in the order they were posted") {
    std::vector<int> order;
    {
      ThreadPool pool("test", 1);
      for (int i = 0; i < 100; ++i) {
        pool.post([&order, i] { order.push_back(i); });
      }
    }
    REQUIRE(order.size() == 100);
    CHECK(order.front() == 0);
    CHECK(order.back() == 99);
  }

  TEST_CASE("tasks run at the same time on different threads") {
    ThreadPool pool("test", 2);
    std::promise<void> first;
    std::promise<void> second;
    pool.post([&] {
      first.set_value();
      second.get_future().wait();
    });
    first.get_future().wait();
    std::promise<void> ran;
    pool.post([&] { ran.set_value(); });
    ran.get_future().wait();
    second.set_value();
  }

  TEST_CASE("a task may post another one") {
    std::promise<int> inner;
    ThreadPool pool("test", 1);
    pool.post([&] { pool.post([&] { inner.set_value(7); }); });
    CHECK(inner.get_future().get() == 7);
  }

  TEST_CASE("threads carry the name of the pool") {
    std::promise<std::string> name;
    ThreadPool pool("namedpool", 1);
    pool.post([&] {
      std::array<char, 16> text{};
      pthread_getname_np(pthread_self(), text.data(), text.size());
      name.set_value(text.data());
    });
    CHECK(name.get_future().get().rfind("namedpool", 0) == 0);
  }

  TEST_CASE("there is at least one processor") { CHECK(processor_count() >= 1); }
}

}  // namespace
}  // namespace hfd::base
