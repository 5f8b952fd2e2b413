// SPDX-License-Identifier: Apache-2.0
// A bounded cache of immutable values whose making is asynchronous and happens once: the first who
// asks starts the load, all who ask meanwhile get its answer. Least recently used out first. Errors
// are handed out, never kept. Used for decoded blocks, delta directories and index pages.
//
// Call-backs run without the lock held; a value that somebody still uses outlives its eviction.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "hfdeltafs/result.hpp"

namespace hfd::rebuild {

template <class Key, class Value, class Hash>
class FlightCache {
 public:
  using Pointer = std::shared_ptr<const Value>;
  using Take = std::function<void(Result<Pointer>)>;
  using Load = std::function<void(Take)>;
  using Weigh = std::uint64_t (*)(const Value&);

  FlightCache(std::uint64_t weight_max, Weigh weigh) : weight_max_(weight_max), weigh_(weigh) {}

  /// nullptr when it is not there (yet).
  Pointer find(const Key& key) {
    const base::Lock lock(mutex_);
    return find_locked(key);
  }

  /// Runs `take` with the value: at once when it is there, else when the load ends. `load` is called
  /// only when nobody else is loading this key.
  void get(const Key& key, const Load& load, Take take) {
    Pointer ready;
    {
      const base::Lock lock(mutex_);
      ready = find_locked(key);
      if (!ready) {
        std::vector<Take>& waiting = under_way_[key];
        waiting.push_back(std::move(take));
        if (waiting.size() > 1) {
          return;
        }
      }
    }
    if (ready) {
      take(std::move(ready));
      return;
    }
    load([this, key](Result<Pointer> value) { loaded(key, std::move(value)); });
  }

  bool is_known(const Key& key) {
    const base::Lock lock(mutex_);
    return index_.count(key) > 0 || under_way_.count(key) > 0;
  }

  void forget(const Key& key) {
    Pointer gone;  // freed after the lock
    const base::Lock lock(mutex_);
    if (const auto found = index_.find(key); found != index_.end()) {
      gone = found->second->value;
      weight_ -= weigh_(*gone);
      order_.erase(found->second);
      index_.erase(found);
    }
  }

 private:
  struct Entry {
    Key key;
    Pointer value;
  };
  using Order = std::list<Entry>;

  Pointer find_locked(const Key& key) HFD_REQUIRES(mutex_) {
    const auto found = index_.find(key);
    if (found == index_.end()) {
      return nullptr;
    }
    order_.splice(order_.begin(), order_, found->second);
    return found->second->value;
  }

  void loaded(const Key& key, Result<Pointer> value) {
    std::vector<Take> waiting;
    Order evicted;  // freed after the lock
    {
      const base::Lock lock(mutex_);
      const auto found = under_way_.find(key);
      waiting = std::move(found->second);
      under_way_.erase(found);
      if (value.ok()) {
        insert_locked(key, *value, evicted);
      }
    }
    for (const Take& take : waiting) {
      take(value);
    }
  }

  void insert_locked(const Key& key, const Pointer& value, Order& evicted) HFD_REQUIRES(mutex_) {
    const std::uint64_t weight = weigh_(*value);
    if (weight > weight_max_ || index_.count(key) > 0) {
      return;
    }
    weight_ += weight;
    order_.push_front(Entry{key, value});
    index_.emplace(key, order_.begin());
    while (weight_ > weight_max_) {
      const auto last = std::prev(order_.end());
      weight_ -= weigh_(*last->value);
      index_.erase(last->key);
      evicted.splice(evicted.begin(), order_, last);
    }
  }

  const std::uint64_t weight_max_;
  const Weigh weigh_;
  base::Mutex mutex_;
  std::uint64_t weight_ HFD_GUARDED_BY(mutex_) = 0;
  Order order_ HFD_GUARDED_BY(mutex_);  ///< most recently used first
  std::unordered_map<Key, typename Order::iterator, Hash> index_ HFD_GUARDED_BY(mutex_);
  std::unordered_map<Key, std::vector<Take>, Hash> under_way_ HFD_GUARDED_BY(mutex_);
};

}  // namespace hfd::rebuild
