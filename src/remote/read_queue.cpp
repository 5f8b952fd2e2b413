// SPDX-License-Identifier: Apache-2.0
#include "remote/read_queue.hpp"

#include <utility>

namespace hfd::remote {

/// One request. Lives until both its work and its entry among the deadlines are gone.
struct ReadQueue::Read {
  std::string object;
  base::Deadline deadline;
  Work work;
  ReadDone done;
  bool answered = false;  ///< under the queue's mutex
};

namespace {
Error too_late(const std::string& object) {
  Error error{ErrorCode::unavailable, "cannot read: no answer within the deadline", object};
  return std::move(error).with_hint("is the disk or server behind this folder alive?");
}
}  // namespace

ReadQueue::ReadQueue()
    : timer_{*this, std::thread([this] { run_timer(); })}, pool_("hfd-folder", thread_count) {}

ReadQueue::Timer::~Timer() {
  {
    const base::Lock lock(queue.mutex_);
    queue.stopping_ = true;
    queue.timer_wake_.notify_all();
  }
  thread.join();
}

void ReadQueue::post(const std::string& object, base::Deadline deadline, Work work, ReadDone done) {
  const auto read =
      std::make_shared<Read>(Read{object, deadline, std::move(work), std::move(done)});
  bool start_now = false;
  {
    const base::Lock lock(mutex_);
    ObjectState& state = objects_[object];
    start_now = state.running < per_object_max;
    if (start_now) {
      ++state.running;
    } else {
      state.waiting.push_back(read);
    }
    const auto place = pending_.emplace(deadline, read);
    if (place == pending_.begin()) {
      timer_wake_.notify_all();
    }
  }
  if (start_now) {
    start(read);
  }
}

void ReadQueue::start(const std::shared_ptr<Read>& read) {
  pool_.post([this, read] {
    const bool late = base::SteadyClock::now() >= read->deadline;
    finish(read, late ? Result<base::Bytes>(too_late(read->object)) : read->work());
    std::shared_ptr<Read> next;
    {
      const base::Lock lock(mutex_);
      const auto found = objects_.find(read->object);
      std::deque<std::shared_ptr<Read>>& waiting = found->second.waiting;
      if (!waiting.empty()) {
        next = std::move(waiting.front());
        waiting.pop_front();
      } else if (--found->second.running == 0) {
        objects_.erase(found);
      }
    }
    if (next) {
      start(next);  // at the end of the queue: other objects first; a pool that ends still runs it
    }
  });
}

void ReadQueue::finish(const std::shared_ptr<Read>& read, Result<base::Bytes> result) {
  ReadDone done;
  {
    const base::Lock lock(mutex_);
    if (read->answered) {
      return;
    }
    read->answered = true;
    done = std::move(read->done);
    const auto [from, to] = pending_.equal_range(read->deadline);
    for (auto at = from; at != to; ++at) {
      if (at->second == read) {
        pending_.erase(at);
        break;
      }
    }
  }
  done(std::move(result));
}

void ReadQueue::run_timer() {
  base::name_this_thread("hfd-deadline");
  base::Lock lock(mutex_);
  while (!stopping_) {
    if (pending_.empty()) {
      timer_wake_.wait(mutex_);
      continue;
    }
    const auto first = pending_.begin();
    if (base::SteadyClock::now() < first->first) {
      timer_wake_.wait_until(mutex_, first->first);
      continue;
    }
    const std::shared_ptr<Read> read = first->second;
    lock.unlock();
    finish(read, too_late(read->object));
    lock.lock();
  }
}

}  // namespace hfd::remote
