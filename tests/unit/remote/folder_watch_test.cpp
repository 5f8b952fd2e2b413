// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>

#include <doctest/doctest.h>

#include "base/mutex.hpp"
#include "remote/folder_fixture.hpp"

namespace hfd::remote {
namespace {

using test::open_folder_remote;
using test::put_text;

/// Counts calls and waits for them.
class Bell {
 public:
  void ring() {
    const base::Lock lock(mutex_);
    ++rings_;
    rung_.notify_all();
  }
  /// Waits for a ring after the last call of this function; false after ten seconds.
  bool heard() {
    const base::Deadline deadline = base::deadline_in(std::chrono::seconds(10));
    const base::Lock lock(mutex_);
    while (rings_ == heard_) {
      if (!rung_.wait_until(mutex_, deadline)) {
        return false;
      }
    }
    heard_ = rings_;
    return true;
  }

 private:
  base::Mutex mutex_;
  base::Condition rung_;
  int rings_ HFD_GUARDED_BY(mutex_) = 0;
  int heard_ HFD_GUARDED_BY(mutex_) = 0;
};

TEST_SUITE("remote/folder_watch") {
  TEST_CASE("a change below a watched folder is told") {
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder.path());
    put_text(*remote, "refs/main/1", "x");
    Bell bell;
    const auto watch = remote->watch("refs", [&] { bell.ring(); });
    REQUIRE(watch != nullptr);
    REQUIRE(remote->put_if_absent("refs/main/2", base::as_bytes("y")).ok());
    CHECK(bell.heard());
    put_text(*remote, "refs/new/deep/3", "z");
    CHECK(bell.heard());
  }

  TEST_CASE("a folder that is made later is watched from then on") {
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder / "bucket");
    Bell bell;
    const auto watch = remote->watch("hfdelta/refs/main", [&] { bell.ring(); });
    REQUIRE(watch != nullptr);
    put_text(*remote, "hfdelta/refs/main/1", "x");
    CHECK(bell.heard());
    // Rings for the folders on the way may still be coming; the last change must be told in any
    // case.
    std::atomic<bool> seen{false};
    const auto second = remote->watch("hfdelta/refs/main", [&] {
      seen = remote->head("hfdelta/refs/main/2").ok();
      bell.ring();
    });
    put_text(*remote, "hfdelta/refs/main/2", "y");
    while (!seen && bell.heard()) {
    }
    CHECK(seen);
  }

  TEST_CASE("no call comes after the watch is gone") {
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder.path());
    std::atomic<int> calls{0};
    auto watch = remote->watch("refs", [&] { ++calls; });
    watch.reset();
    const int before = calls;
    put_text(*remote, "refs/a", "x");
    CHECK(calls == before);
  }
}

}  // namespace
}  // namespace hfd::remote
