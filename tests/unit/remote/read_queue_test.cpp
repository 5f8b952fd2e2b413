// SPDX-License-Identifier: Apache-2.0
#include "remote/read_queue.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

namespace hfd::remote {
namespace {

base::Deadline in_ms(int milliseconds) {
  return base::deadline_in(std::chrono::milliseconds(milliseconds));
}

TEST_SUITE("remote/read_queue") {
  TEST_CASE("a read that hangs is answered at its deadline, once") {
    std::promise<void> let_go;
    std::shared_future<void> gone(let_go.get_future());
    std::atomic<int> answers{0};
    std::promise<ErrorCode> code;
    {
      ReadQueue queue;
      queue.post(
          "stuck", in_ms(30),
          [gone]() -> Result<base::Bytes> {
            gone.wait();
            return base::to_bytes("late");
          },
          [&](Result<base::Bytes> bytes) {
            ++answers;
            code.set_value(bytes.ok() ? ErrorCode::io : bytes.error().code);
          });
      CHECK(code.get_future().get() == ErrorCode::unavailable);
      let_go.set_value();
    }
    CHECK(answers == 1);
  }

  TEST_CASE("one stuck object does not stop the others") {
    std::promise<void> let_go;
    std::shared_future<void> gone(let_go.get_future());
    std::atomic<int> stuck_answers{0};
    {
      ReadQueue queue;
      for (int i = 0; i < 64; ++i) {
        queue.post(
            "stuck", in_ms(600'000),
            [gone]() -> Result<base::Bytes> {
              gone.wait();
              return base::Bytes();
            },
            [&](Result<base::Bytes> /*bytes*/) { ++stuck_answers; });
      }
      for (int i = 0; i < 32; ++i) {
        std::promise<bool> answered;
        queue.post(
            "other", in_ms(600'000), []() -> Result<base::Bytes> { return base::to_bytes("x"); },
            [&](Result<base::Bytes> bytes) { answered.set_value(bytes.ok()); });
        CHECK(answered.get_future().get());
      }
      CHECK(stuck_answers == 0);
      let_go.set_value();
    }
    CHECK(stuck_answers == 64);
  }

  TEST_CASE("a read that is late before it starts does no work") {
    std::atomic<bool> worked{false};
    std::promise<ErrorCode> code;
    ReadQueue queue;
    queue.post(
        "a", in_ms(-1),
        [&]() -> Result<base::Bytes> {
          worked = true;
          return base::Bytes();
        },
        [&](Result<base::Bytes> bytes) {
          code.set_value(bytes.ok() ? ErrorCode::io : bytes.error().code);
        });
    CHECK(code.get_future().get() == ErrorCode::unavailable);
    CHECK_FALSE(worked);
  }
}

}  // namespace
}  // namespace hfd::remote
