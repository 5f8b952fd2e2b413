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

namespace {

/// Runs the decoder over what was just coded. An object that cannot be decoded must never leave this
/// function: the file that it stands for may be gone by the time somebody notices.
bool decodes_back(const EncodePlan& plan, const BlockJob& job, base::ByteView source) {
  if (job.coded.mode == BlockMode::same || job.coded.mode == BlockMode::zero) {
    return true;  // established by comparing bytes
  }
  const bool use_sources = job.coded.mode != BlockMode::raw;
  const BlockLayout layout = block_layout(plan.map.extents, job.range, use_sources);
  base::Bytes out(job.target.size());
  const auto decoded = decode_payload(layout, plan.tables, job.coded.mode, job.coded.payload,
                                      use_sources ? source : base::ByteView(), out);
  return decoded.ok() && std::equal(out.begin(), out.end(), job.target.begin());
}

}  // namespace

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
  if (!decodes_back(plan_, job, *source)) {
    job.error = Error{ErrorCode::corrupt, "a coded block does not decode to its target; please report this",
                      "block at byte " + std::to_string(job.range.offset)};
  }
}

}  // namespace hfd::codec
