// SPDX-License-Identifier: Apache-2.0
#include "cli/delta_command.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/thread_pool.hpp"
#include "codec/apply.hpp"
#include "codec/delta_writer.hpp"

namespace hfd::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t hash_buffer_bytes = 1U << 20U;

struct BaseFile {
  std::string path;           ///< on disk
  std::string relative_path;  ///< within the base folder; the file's name when the base is a file
  std::unique_ptr<base::FileBytes> file;
};

Result<BaseFile> open_base_file(const std::string& path, std::string relative_path) {
  HFD_TRY(std::unique_ptr<base::FileBytes> file, base::FileBytes::open(path));
  return BaseFile{path, std::move(relative_path), std::move(file)};
}

/// The base's regular files, by path.
Result<std::vector<BaseFile>> open_base(const std::string& base) {
  std::vector<BaseFile> files;
  std::error_code error;
  if (!fs::is_directory(base, error)) {
    HFD_TRY(BaseFile file, open_base_file(base, fs::path(base).filename().string()));
    files.push_back(std::move(file));
    return files;
  }
  std::vector<std::string> paths;
  auto entry = fs::recursive_directory_iterator(base, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_regular_file(error)) {
      paths.push_back(entry->path().string());
    }
  }
  if (error) {
    return base::os_error(error.value(), "cannot list", base);
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    HFD_TRY(BaseFile file, open_base_file(path, fs::path(path).lexically_relative(base).string()));
    files.push_back(std::move(file));
  }
  return files;
}

Result<ContentHash> hash_file(base::ReadableBytes& file) {
  base::Sha256 hash;
  base::Bytes buffer(hash_buffer_bytes);
  for (std::uint64_t at = 0; at < file.size(); at += buffer.size()) {
    buffer.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(hash_buffer_bytes, file.size() - at)));
    HFD_TRY_VOID(file.read_at(at, buffer));
    hash.update(buffer);
  }
  return ContentHash{hash.finish()};
}

/// A file that gets its name only when it is whole; removed otherwise.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path) {
    const std::string temporary = path + ".tmp" + std::to_string(getpid());
    HFD_TRY(base::Fd fd, base::open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0644));
    return NewFile(path, temporary, std::move(fd));
  }
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        fd_(std::move(other.fd_)),
        bytes_(other.bytes_) {}
  NewFile& operator=(NewFile&&) = delete;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (!temporary_.empty()) {
      unlink(temporary_.c_str());
    }
  }

  Result<void> append(base::ByteView bytes) {
    HFD_TRY_VOID(base::write_exactly(fd_, bytes_, bytes, path_));
    bytes_ += bytes.size();
    return {};
  }
  Result<void> keep() {
    std::error_code error;
    fs::rename(temporary_, path_, error);
    if (error) {
      return base::os_error(error.value(), "cannot rename", path_);
    }
    temporary_.clear();
    return {};
  }

 private:
  NewFile(std::string path, std::string temporary, base::Fd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

  std::string path_;
  std::string temporary_;
  base::Fd fd_;
  std::uint64_t bytes_ = 0;
};

/// The open file of each source of the delta, in its order.
Result<std::vector<base::ReadableBytes*>> find_sources(const codec::DeltaDirectory& directory,
                                                       const std::vector<BaseFile>& files,
                                                       const std::string& base) {
  std::vector<std::optional<ContentHash>> hashes(files.size());
  std::vector<base::ReadableBytes*> found;
  for (const codec::SourceInfo& source : directory.sources()) {
    base::ReadableBytes* match = nullptr;
    for (std::size_t i = 0; i < files.size() && match == nullptr; ++i) {
      if (files[i].file->size() != source.bytes) {
        continue;
      }
      if (!hashes[i]) {
        HFD_TRY(hashes[i], hash_file(*files[i].file));
      }
      if (*hashes[i] == source.sha256) {
        match = files[i].file.get();
      }
    }
    if (match == nullptr) {
      return Error{ErrorCode::corrupt,
                   "not the base this delta was made against: it needs the content with sha256 " +
                       source.sha256.hex() + " (" + std::to_string(source.bytes) + " bytes)",
                   base, "give the file or folder that `delta encode` was given"};
    }
    found.push_back(match);
  }
  return found;
}

base::Json content_json(std::uint64_t bytes, const ContentHash& sha256) {
  base::Json json = base::Json::object();
  json.set("bytes", bytes);
  json.set("sha256", sha256.hex());
  return json;
}

base::Json info_json(const codec::DeltaInfo& info) {
  base::Json modes = base::Json::object();
  modes.set("same", info.modes.same);
  modes.set("sparse", info.modes.sparse);
  modes.set("dense", info.modes.dense);
  modes.set("raw", info.modes.raw);
  modes.set("zero", info.modes.zero);
  base::Json sources = base::Json::array();
  for (const codec::SourceInfo& source : info.sources) {
    sources.push(content_json(source.bytes, source.sha256));
  }
  base::Json json = base::Json::object();
  json.set("format_version", std::uint64_t{info.format_version});
  json.set("target", content_json(info.target_bytes, info.target_sha256));
  json.set("sources", std::move(sources));
  json.set("block_bytes", std::uint64_t{info.block_bytes});
  json.set("blocks", info.blocks);
  json.set("modes", std::move(modes));
  json.set("index_bytes", info.index_bytes);
  json.set("payload_bytes", info.payload_bytes);
  json.set("bytes", info.object_bytes);
  json.set("changed_elements", info.changed_elements);
  json.set("total_elements", info.total_elements);
  return json;
}

std::string info_text(const codec::DeltaInfo& info) {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  std::string text;
  text +=
      "target   " + number(info.target_bytes) + " bytes, sha256 " + info.target_sha256.hex() + "\n";
  for (const codec::SourceInfo& source : info.sources) {
    text += "source   " + number(source.bytes) + " bytes, sha256 " + source.sha256.hex() + "\n";
  }
  if (info.sources.empty()) {
    text += "source   none (an anchor)\n";
  }
  text += "blocks   " + number(info.blocks) + " of " + number(info.block_bytes) +
          " bytes: " + number(info.modes.same) + " same, " + number(info.modes.sparse) +
          " sparse, " + number(info.modes.dense) + " dense, " + number(info.modes.raw) + " raw, " +
          number(info.modes.zero) + " zero\n";
  text += "object   " + number(info.object_bytes) + " bytes: " + number(info.payload_bytes) +
          " payload, " + number(info.index_bytes) + " index\n";
  text += "elements " + number(info.changed_elements) + " of " + number(info.total_elements) +
          " changed\n";
  text += "format   version " + number(info.format_version) + "\n";
  return text;
}

}  // namespace

Result<void> run_delta_encode(const std::string& base, const std::string& target,
                              const std::string& out) {
  HFD_TRY(const std::vector<BaseFile> files, open_base(base));
  HFD_TRY(const std::unique_ptr<base::FileBytes> target_file, base::FileBytes::open(target));
  codec::EncodeOptions options;
  options.target_path = fs::path(target).filename().string();
  std::error_code error;
  const bool single = !fs::is_directory(base, error);
  std::vector<codec::SourceFile> sources;
  for (const BaseFile& file : files) {
    HFD_TRY(const ContentHash sha256, hash_file(*file.file));
    // Two files given by name are versions of each other, whatever their names.
    sources.push_back({sha256, single ? options.target_path : file.relative_path, file.file.get()});
  }
  HFD_TRY(NewFile file, NewFile::create(out));
  base::ThreadPool pool("encode", base::processor_count());
  HFD_TRY(const codec::EncodedDelta encoded,
          codec::encode_delta(*target_file, sources, options, pool,
                              [&file](base::ByteView bytes) { return file.append(bytes); }));
  static_cast<void>(encoded);
  return file.keep();
}

Result<void> run_delta_apply(const std::string& base, const std::string& delta,
                             const std::string& out) {
  HFD_TRY(const std::unique_ptr<base::FileBytes> object, base::FileBytes::open(delta));
  Result<std::shared_ptr<const codec::DeltaDirectory>> directory = codec::read_directory(*object);
  if (!directory) {
    return std::move(directory).error().on(delta);
  }
  HFD_TRY(const std::vector<BaseFile> files, open_base(base));
  HFD_TRY(const std::vector<base::ReadableBytes*> sources, find_sources(**directory, files, base));
  HFD_TRY(NewFile file, NewFile::create(out));
  Result<void> applied = codec::apply_delta(
      *object, sources, [&file](base::ByteView bytes) { return file.append(bytes); });
  if (!applied) {
    return std::move(applied).error().on(delta);
  }
  return file.keep();
}

Result<std::string> run_delta_info(const std::string& delta, bool json) {
  HFD_TRY(const std::unique_ptr<base::FileBytes> object, base::FileBytes::open(delta));
  Result<codec::DeltaInfo> info = codec::delta_info(*object);
  if (!info) {
    return std::move(info).error().on(delta);
  }
  return json ? info_json(*info).dump() + "\n" : info_text(*info);
}

}  // namespace hfd::cli
