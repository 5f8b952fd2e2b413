// SPDX-License-Identifier: Apache-2.0
// Manifests in memory, least recently used out first. Part of lineage (Bucket). Thread-safe.
#pragma once

#include <cstdint>
#include <iterator>
#include <list>
#include <unordered_map>

#include "base/mutex.hpp"
#include "lineage/bucket.hpp"

namespace hfd::lineage {

class Bucket::Cache {
 public:
  /// nullptr when it is not there.
  VersionPtr find(const VersionId& id) {
    const base::Lock lock(mutex_);
    const auto found = index_.find(id);
    if (found == index_.end()) {
      return nullptr;
    }
    order_.splice(order_.begin(), order_, found->second);
    return *found->second;
  }

  void insert(const VersionPtr& version) {
    const base::Lock lock(mutex_);
    if (index_.count(version->id) != 0) {
      return;
    }
    order_.push_front(version);
    index_.emplace(version->id, order_.begin());
    bytes_ += version->manifest_bytes;
    while (bytes_ > bytes_max && order_.size() > 1) {
      bytes_ -= order_.back()->manifest_bytes;
      index_.erase(order_.back()->id);
      order_.pop_back();
    }
  }

 private:
  /// Serialised size; in memory a manifest takes about twice that.
  static constexpr std::uint64_t bytes_max = 16U << 20U;

  base::Mutex mutex_;
  std::uint64_t bytes_ HFD_GUARDED_BY(mutex_) = 0;
  std::list<VersionPtr> order_ HFD_GUARDED_BY(mutex_);  ///< most recently used first
  std::unordered_map<VersionId, std::list<VersionPtr>::iterator> index_ HFD_GUARDED_BY(mutex_);
};

}  // namespace hfd::lineage
