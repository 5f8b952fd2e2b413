// SPDX-License-Identifier: Apache-2.0
#include "publish/encode.hpp"

#include <algorithm>
#include <atomic>

#include <fcntl.h>
#include <unistd.h>

#include "base/hash.hpp"
#include "codec/delta_writer.hpp"
#include "codec/zstd_frame.hpp"

namespace hfd::publish {
namespace {

/// Small files are read by every cold mount and written once: a slow level pays.
constexpr int small_file_zstd_level = 12;
constexpr std::uint64_t read_bytes = 1U << 20U;
/// Progress is told this often.
constexpr std::uint64_t progress_step_bytes = 4U << 20U;

/// Passes reads on and tells how far they came.
class WatchedBytes final : public base::ReadableBytes {
 public:
  WatchedBytes(base::ReadableBytes& inner, const PublishRequest& request, const std::string& path,
               const char* doing)
      : inner_(inner), request_(request), path_(path), doing_(doing) {
    tell(0);
  }
  std::uint64_t size() const override { return inner_.size(); }
  Result<void> read_at(std::uint64_t offset, base::ByteSpan out) override {
    HFD_TRY_VOID(inner_.read_at(offset, out));
    const std::uint64_t end = offset + out.size();
    std::uint64_t told = told_.load(std::memory_order_relaxed);
    if ((end >= told + progress_step_bytes || end == size()) && end > told &&
        told_.compare_exchange_strong(told, end, std::memory_order_relaxed)) {
      tell(end);
    }
    return {};
  }

 private:
  void tell(std::uint64_t done) const {
    if (request_.progress) {
      request_.progress(path_, doing_, done, size());
    }
  }
  base::ReadableBytes& inner_;
  const PublishRequest& request_;
  const std::string& path_;
  const char* doing_;
  std::atomic<std::uint64_t> told_{0};
};

/// A file that is gone when the scope ends.
class TemporaryFile {
 public:
  static Result<TemporaryFile> create(std::string path) {
    HFD_TRY(base::Fd fd, base::open_file(path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    return TemporaryFile(std::move(path), std::move(fd));
  }
  ~TemporaryFile() {
    if (fd_.valid()) {
      ::unlink(path_.c_str());
    }
  }
  TemporaryFile(TemporaryFile&&) noexcept = default;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  Result<void> append(base::ByteView bytes) {
    HFD_TRY_VOID(base::write_exactly(fd_, bytes_, bytes, path_));
    bytes_ += bytes.size();
    return {};
  }
  Result<std::unique_ptr<base::FileBytes>> reader() const { return base::FileBytes::open(path_); }

 private:
  TemporaryFile(std::string path, base::Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  base::Fd fd_;
  std::uint64_t bytes_ = 0;
};

lineage::Edge edge_of(const codec::EncodedDelta& encoded) {
  if (encoded.sources.empty()) {
    return lineage::BlobEdge{.object = encoded.object,
                             .object_bytes = encoded.object_bytes,
                             .encoding = lineage::BlobEdge::Encoding::hfd,
                             .directory = encoded.directory,
                             .directory_sha256 = encoded.directory_sha256};
  }
  lineage::DeltaEdge delta{.object = encoded.object,
                           .object_bytes = encoded.object_bytes,
                           .directory = encoded.directory,
                           .directory_sha256 = encoded.directory_sha256,
                           .sources = {}};
  for (const codec::SourceInfo& source : encoded.sources) {
    delta.sources.push_back(source.sha256);
  }
  return delta;
}

}  // namespace

Error cancelled_error() {
  return Error{ErrorCode::stale, "the publish was stopped: files changed meanwhile"};
}

Result<void> FileCoder::check_cancelled() const {
  if (request_.cancelled && request_.cancelled()) {
    return cancelled_error();
  }
  return {};
}

Result<std::uint64_t> FileCoder::store(const std::string& path, const std::string& name,
                                       base::ReadableBytes& bytes) {
  {
    const base::Lock lock(mutex_);
    if (!stored_.insert(name).second) {
      return std::uint64_t{0};  // by this publish, for another file
    }
  }
  const auto there = bucket_.remote().head(name);
  if (there.ok() && there->bytes == bytes.size()) {
    return std::uint64_t{0};  // by an earlier try, or for an older version
  }
  WatchedBytes watched(bytes, request_, path, "uploading");
  HFD_TRY_VOID(bucket_.remote().put(name, watched));
  return bytes.size();
}

Result<CodedFile> FileCoder::code_small(const std::string& path, base::ReadableBytes& bytes) {
  HFD_TRY_VOID(check_cancelled());
  base::Bytes content(static_cast<std::size_t>(bytes.size()));
  HFD_TRY_VOID(bytes.read_at(0, content));
  CodedFile coded;
  coded.sha256 = base::content_hash(content);
  coded.bytes = content.size();
  if (sources_.knows(coded.sha256)) {
    return coded;
  }
  lineage::BlobEdge blob;
  base::Bytes frame;
  codec::zstd_compress(content, {}, small_file_zstd_level, frame);
  const bool pays = frame.size() < content.size();
  const base::Bytes& stored = pays ? frame : content;
  blob.encoding = pays ? lineage::BlobEdge::Encoding::zstd : lineage::BlobEdge::Encoding::identity;
  blob.object = base::object_id(stored);
  blob.object_bytes = stored.size();
  base::MemoryBytes object(stored);
  HFD_TRY(coded.stored_bytes, store(path, lineage::blob_object(blob.object), object));
  coded.edge = blob;
  return coded;
}

Result<ContentHash> FileCoder::hash_of(base::ReadableBytes& bytes) const {
  base::Sha256 sha256;
  base::Bytes buffer(static_cast<std::size_t>(std::min(bytes.size(), read_bytes)));
  for (std::uint64_t at = 0; at < bytes.size();) {
    HFD_TRY_VOID(check_cancelled());
    const std::uint64_t count = std::min<std::uint64_t>(bytes.size() - at, buffer.size());
    const base::ByteSpan piece = base::ByteSpan(buffer).first(static_cast<std::size_t>(count));
    HFD_TRY_VOID(bytes.read_at(at, piece));
    sha256.update(piece);
    at += count;
  }
  return ContentHash{sha256.finish()};
}

Result<CodedFile> FileCoder::code_large(const std::string& path, base::ReadableBytes& bytes) {
  HFD_TRY_VOID(check_cancelled());
  const auto same_size = [&](const CodedFile& coded) { return coded.bytes == bytes.size(); };
  if (sources_.knows_size(bytes.size()) || std::any_of(large_.begin(), large_.end(), same_size)) {
    CodedFile known;
    HFD_TRY(known.sha256, hash_of(bytes));
    known.bytes = bytes.size();
    const auto same = std::find_if(large_.begin(), large_.end(), [&](const CodedFile& coded) {
      return coded.sha256 == known.sha256;
    });
    if (sources_.knows(known.sha256)) {
      return known;
    }
    if (same != large_.end()) {
      known.edge = same->edge;
      return known;
    }
  }
  HFD_TRY(CodedFile coded, encode(path, bytes));
  large_.push_back(coded);
  return coded;
}

Result<CodedFile> FileCoder::encode(const std::string& path, base::ReadableBytes& bytes) {
  HFD_TRY(TemporaryFile temporary,
          TemporaryFile::create(request_.temporary_folder + "/" + std::to_string(::getpid()) + "-" +
                                std::to_string(temporary_count_++) + ".hfd"));
  WatchedBytes watched(bytes, request_, path, "encoding");
  codec::EncodeOptions options;
  options.target_path = path;
  options.cancelled = request_.cancelled;
  HFD_TRY(
      const codec::EncodedDelta encoded,
      codec::encode_delta(watched, sources_.for_target(path), options, pool_,
                          [&temporary](base::ByteView piece) { return temporary.append(piece); }));
  HFD_TRY_VOID(check_cancelled());
  CodedFile coded{.sha256 = encoded.target_sha256,
                  .bytes = encoded.target_bytes,
                  .edge = edge_of(encoded),
                  .stored_bytes = 0,
                  .changed_elements = encoded.changed_elements,
                  .total_elements = encoded.total_elements};
  HFD_TRY(const std::unique_ptr<base::FileBytes> object, temporary.reader());
  HFD_TRY(coded.stored_bytes, store(path, lineage::object_of(*coded.edge), *object));
  return coded;
}

}  // namespace hfd::publish
