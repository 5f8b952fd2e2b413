// SPDX-License-Identifier: Apache-2.0
// A remote in memory whose answers a test scripts: held back until released, damaged, or errors.
// Counts requests. Used by unit tests only.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/mutex.hpp"
#include "remote/remote.hpp"

namespace hfd::test {

class FakeRemote final : public remote::Remote {
 public:
  struct Request {
    std::string name;
    ByteRange range;
  };

  void set_object(const std::string& name, std::string bytes) {
    const base::Lock lock(mutex_);
    objects_[name] = std::move(bytes);
  }
  /// Takes over all that another remote has under `prefix`.
  void copy_from(remote::Remote& other, const std::string& prefix) {
    const auto listed = other.list(prefix);
    REQUIRE(listed.ok());
    for (const remote::ObjectInfo& info : *listed) {
      const auto bytes = remote::read_whole(other, info.name, 1U << 30U,
                                            base::deadline_in(std::chrono::seconds(30)));
      REQUIRE(bytes.ok());
      set_object(info.name, std::string(base::as_text(*bytes)));
    }
  }
  /// Answers about this object wait for release().
  void hold(const std::string& name) {
    const base::Lock lock(mutex_);
    held_names_.insert(name);
  }
  /// Gives all answers that were held back, and holds none from now on.
  void release() {
    std::vector<Held> held;
    {
      const base::Lock lock(mutex_);
      held_names_.clear();
      held.swap(held_);
    }
    for (Held& one : held) {
      one.done(answer(one.request));
    }
  }
  /// The next answers are this error, so many times.
  void fail(const Error& error, int times) {
    const base::Lock lock(mutex_);
    for (int i = 0; i < times; ++i) {
      errors_.push_back(error);
    }
  }
  /// The next `times` answers that hold this byte have it flipped.
  void flip(const std::string& name, std::uint64_t offset, int times) {
    const base::Lock lock(mutex_);
    flips_.push_back({name, offset, times});
  }
  std::vector<Request> requests() const {
    const base::Lock lock(mutex_);
    return requests_;
  }
  std::size_t request_count() const { return requests().size(); }
  std::size_t held_count() const {
    const base::Lock lock(mutex_);
    return held_.size();
  }

  const std::string& uri() const override { return uri_; }
  remote::Capabilities capabilities() const override { return {}; }
  void read(const std::string& name, ByteRange range, base::Deadline /*deadline*/,
            remote::ReadDone done) override {
    {
      const base::Lock lock(mutex_);
      requests_.push_back({name, range});
      if (held_names_.count(name) > 0) {
        held_.push_back({{name, range}, std::move(done)});
        return;
      }
    }
    done(answer({name, range}));
  }
  Result<remote::ObjectInfo> head(const std::string& /*name*/) override { return unscripted(); }
  Result<std::vector<remote::ObjectInfo>> list(const std::string& /*prefix*/) override {
    return unscripted();
  }
  Result<void> put(const std::string& /*name*/, base::ReadableBytes& /*content*/) override {
    return unscripted();
  }
  Result<void> put_if_absent(const std::string& /*name*/, base::ByteView /*content*/) override {
    return unscripted();
  }
  std::optional<std::string> local_path(const std::string& /*name*/) const override { return {}; }
  Result<void> remove(const std::string& /*name*/) override { return unscripted(); }
  std::unique_ptr<remote::Watch> watch(const std::string& /*prefix*/,
                                       std::function<void()> /*changed*/) override {
    return nullptr;
  }

 private:
  struct Held {
    Request request;
    remote::ReadDone done;
  };
  struct Flip {
    std::string name;
    std::uint64_t offset = 0;
    int times = 0;
  };

  static Error unscripted() { return Error{ErrorCode::unsupported, "not part of the script"}; }

  Result<base::Bytes> answer(const Request& request) {
    const base::Lock lock(mutex_);
    if (!errors_.empty()) {
      Error error = std::move(errors_.front());
      errors_.pop_front();
      return error;
    }
    const auto found = objects_.find(request.name);
    if (found == objects_.end()) {
      return Error{ErrorCode::not_found, "no such object", request.name};
    }
    if (!request.range.within(found->second.size())) {
      return Error{ErrorCode::corrupt, "shorter than expected", request.name};
    }
    base::Bytes bytes =
        base::to_bytes(std::string_view(found->second).substr(request.range.offset, request.range.size));
    for (Flip& flip : flips_) {
      const bool inside = flip.name == request.name && flip.offset >= request.range.offset &&
                          flip.offset < request.range.end();
      if (inside && flip.times > 0) {
        --flip.times;
        bytes[flip.offset - request.range.offset] ^= std::byte{0x40};
      }
    }
    return bytes;
  }

  const std::string uri_ = "fake://remote";
  mutable base::Mutex mutex_;
  std::map<std::string, std::string> objects_ HFD_GUARDED_BY(mutex_);
  std::set<std::string> held_names_ HFD_GUARDED_BY(mutex_);
  std::vector<Held> held_ HFD_GUARDED_BY(mutex_);
  std::deque<Error> errors_ HFD_GUARDED_BY(mutex_);
  std::vector<Flip> flips_ HFD_GUARDED_BY(mutex_);
  std::vector<Request> requests_ HFD_GUARDED_BY(mutex_);
};

}  // namespace hfd::test
