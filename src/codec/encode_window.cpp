// SPDX-License-Identifier: Apache-2.0
#include "codec/encode_window.hpp"

#include <algorithm>
#include <utility>

#include "base/hash.hpp"

namespace hfd::codec {
namespace {

// A block on its way takes about six times its size (target, source, candidates of payloads).
constexpr std::uint64_t window_memory_bytes = 72U << 20U;
constexpr std::uint64_t copies_per_block = 6;

std::size_t slots_for(std::size_t threads, unsigned block_log2) {
  const std::uint64_t fit = window_memory_bytes / copies_per_block >> block_log2;
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(fit, 1, 4 * threads));
}

}  // namespace

EncodeWindow::EncodeWindow(const EncodePlan& plan, const std::vector<SourceFile>& sources,
                           base::ThreadPool& pool)
    : plan_(plan),
      sources_(sources),
      pool_(pool),
      slots_max_(slots_for(pool.thread_count(), plan.block_log2)) {}

EncodeWindow::~EncodeWindow() {
  while (!empty()) {
    finish_oldest();
  }
}

void EncodeWindow::start(std::unique_ptr<BlockJob> job) {
  slots_.push_back(std::make_unique<Slot>());
  Slot* slot = slots_.back().get();
  slot->job = std::move(job);
  pool_.post([this, slot] {
    run(*slot->job);
    const base::Lock lock(mutex_);
    slot->done = true;
    // Under the lock: once it is released the waiting thread may destroy this window.
    finished_.notify_all();
  });
}

std::unique_ptr<BlockJob> EncodeWindow::finish_oldest() {
  Slot& slot = *slots_.front();
  {
    const base::Lock lock(mutex_);
    while (!slot.done) {
      finished_.wait(mutex_);
    }
  }
  std::unique_ptr<BlockJob> job = std::move(slot.job);
  slots_.pop_front();
  return job;
}

void EncodeWindow::run(BlockJob& job) const {
  const BlockLayout layout = block_layout(plan_.map.extents, job.range, true);
  Result<base::Bytes> source = read_sources(layout, sources_);
  if (!source) {
    job.error = std::move(source).error();
    return;
  }
  job.hash = base::xxh3_128(job.target);
  if (plan_.map.has_tensors) {
    job.changed = count_changed(layout, *source, job.target);
  }
  job.coded = encode_block(layout, plan_.tables, *source, job.target, plan_.block_options);
}

}  // namespace hfd::codec
