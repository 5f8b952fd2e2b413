// SPDX-License-Identifier: Apache-2.0
#include "api/pull.hpp"

#include <algorithm>

#include "api/content_stream.hpp"
#include "api/folder_writer.hpp"
#include "api/session.hpp"
#include "lineage/parallel_for.hpp"

namespace hfd::api {
namespace {

/// Files written at once. Each holds a window of pieces; the rebuilder works on a bounded number of
/// requests.
constexpr std::size_t file_count_at_once = 4;

class Pull {
 public:
  Pull(const PullOptions& options, Session& session, const FolderWriter& writer,
       lineage::VersionPtr version)
      : options_(options), session_(session), writer_(writer), version_(std::move(version)) {}

  Result<Pulled> run() {
    std::vector<const lineage::FileEntry*> files;
    for (const lineage::FileEntry& entry : version_->manifest.files) {
      if (entry.kind == lineage::FileEntry::Kind::file) {
        files.push_back(&entry);
      }
    }
    Pulled pulled;
    pulled.version = version_->id;
    pulled.files.resize(files.size());
    // Threads of its own: those of the rebuilder must stay free to answer.
    base::ThreadPool pool("hfd-pull",
                          std::max<std::size_t>(1, std::min(file_count_at_once, files.size())));
    HFD_TRY_VOID(lineage::parallel_for(pool, files.size(), [&](std::size_t i) -> Result<void> {
      HFD_TRY(pulled.files[i], pull_file(*files[i]));
      return {};
    }));
    // Symlinks last: no file was written through one that came from the version itself.
    for (const lineage::FileEntry& entry : version_->manifest.files) {
      if (entry.kind == lineage::FileEntry::Kind::folder) {
        HFD_TRY_VOID(writer_.make_folder(entry));
      } else if (entry.kind == lineage::FileEntry::Kind::symlink) {
        HFD_TRY_VOID(writer_.write_symlink(entry));
      }
    }
    return pulled;
  }

 private:
  Result<PulledFile> pull_file(const lineage::FileEntry& file) {
    PulledFile pulled{file.path, file.bytes, file.sha256, false};
    HFD_TRY(const bool is_right, writer_.is_right(file));
    if (is_right) {
      return pulled;
    }
    if (options_.progress) {
      options_.progress(file.path, file.bytes);
    }
    auto written = writer_.write_file(file, [&](const base::ByteSink& sink) {
      return stream_content(session_.rebuilder(), {version_, file.sha256}, ByteRange{0, file.bytes},
                            sink);
    });
    if (!written.ok()) {
      return std::move(written).error().on(file.path);
    }
    pulled.written = true;
    return pulled;
  }

  const PullOptions& options_;
  Session& session_;
  const FolderWriter& writer_;
  const lineage::VersionPtr version_;
};

}  // namespace

Result<Pulled> pull(const PullOptions& options) {
  HFD_TRY(const std::unique_ptr<Session> session,
          Session::open({.source = options.source, .base = options.base, .ref = options.ref}));
  HFD_TRY(lineage::VersionPtr version, session->version(options.version));
  HFD_TRY(const FolderWriter writer, FolderWriter::open(options.folder));
  return Pull(options, *session, writer, std::move(version)).run();
}

}  // namespace hfd::api
