// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.hpp"

#include <pthread.h>

#include <algorithm>

namespace hfd::base {

ThreadPool::ThreadPool(const std::string& name, std::size_t thread_count) {
  threads_.reserve(thread_count);
  for (std::size_t i = 0; i < thread_count; ++i) {
    threads_.emplace_back([this, name, i] {
      name_this_thread(name + "-" + std::to_string(i));
      run();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void ThreadPool::post(std::function<void()> task) {
  {
    const Lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ThreadPool::run() {
  while (true) {
    std::function<void()> task;
    {
      const Lock lock(mutex_);
      while (tasks_.empty() && !stopping_) {
        wake_.wait(mutex_);
      }
      if (tasks_.empty()) {
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

std::size_t processor_count() { return std::max(1U, std::thread::hardware_concurrency()); }

void name_this_thread(const std::string& name) { pthread_setname_np(pthread_self(), name.substr(0, 15).c_str()); }

}  // namespace hfd::base
