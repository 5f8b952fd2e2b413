// SPDX-License-Identifier: Apache-2.0
// A remote that is a folder of this machine (local disk, NFS, a FUSE mount of something else).
// Opened through open_remote(). Objects are plain files; names that are being written live in the
// hidden folder `.hfdelta-tmp` at the root, which list() does not show.
#pragma once

#include <memory>
#include <string>

#include "remote/read_queue.hpp"
#include "remote/remote.hpp"

namespace hfd::remote {

/// not_found when the folder is missing and not `create`. The folder itself is made by the first
/// put.
Result<std::unique_ptr<Remote>> open_folder(const ParsedUri& uri, bool create);

class FolderRemote final : public Remote {
 public:
  /// `root` is absolute and without a slash at its end (except "/").
  FolderRemote(std::string root, std::string uri);

  const std::string& uri() const override { return uri_; }
  Capabilities capabilities() const override;
  void read(const std::string& name, ByteRange range, base::Deadline deadline,
            ReadDone done) override;
  Result<ObjectInfo> head(const std::string& name) override;
  Result<std::vector<ObjectInfo>> list(const std::string& prefix) override;
  Result<void> put(const std::string& name, base::ReadableBytes& content) override;
  Result<void> put_if_absent(const std::string& name, base::ByteView content) override;
  std::optional<std::string> local_path(const std::string& name) const override;
  Result<void> remove(const std::string& name) override;
  std::unique_ptr<Watch> watch(const std::string& prefix, std::function<void()> changed) override;

 private:
  std::string path_of(const std::string& name) const;
  Result<base::Bytes> read_now(const std::string& name, ByteRange range);
  Result<std::string> write_temporary(base::ReadableBytes& content);
  /// Makes the folders above `name`, each durable, and returns the innermost.
  Result<std::string> make_parent(const std::string& name);

  const std::string root_;
  const std::string uri_;
  ReadQueue reads_;
};

}  // namespace hfd::remote
