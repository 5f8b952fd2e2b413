// SPDX-License-Identifier: Apache-2.0
// The file system without a kernel: every operation that the fuse layer offers, in terms of inodes,
// handles and Result. The root is the work tree (read-only mounts refuse changes); `.hfdelta` below it
// is the views. Calls that take a `Take` or `Done` may answer later, from another thread; the others
// touch the local disk at most. Nothing here waits for a remote on the caller's thread. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/mutex.hpp"
#include "base/thread_pool.hpp"
#include "publish/syncer.hpp"
#include "publish/work_tree.hpp"
#include "rebuild/rebuilder.hpp"
#include "vfs/attributes.hpp"
#include "vfs/open_files.hpp"
#include "vfs/views.hpp"

namespace hfd::vfs {

struct FileSystemOptions {
  bool read_only = false;
  bool sync_on_close = false;  ///< -o sync: close() answers when the remote has the version
  std::uint32_t uid = 0;       ///< owner of views
  std::uint32_t gid = 0;
  std::chrono::milliseconds deadline{60'000};
};

struct Opened {
  HandleId handle = 0;
  bool bypass_page_cache = false;  ///< content that changes by itself (status.json)
};
struct Created {
  Attributes attributes;
  HandleId handle = 0;
};
struct SpaceInfo {
  std::uint64_t block_bytes = 4096;
  std::uint64_t blocks = 0;
  std::uint64_t blocks_free = 0;
  std::uint64_t files = 0;
  std::uint64_t files_free = 0;
};
struct AttributeSet {
  publish::AttributeChange change;
  std::optional<std::uint64_t> bytes;  ///< truncate or extend
};

class FileSystem {
 public:
  using Done = std::function<void(Result<void>)>;
  using ReadDone = rebuild::ReadDone;

  FileSystem(publish::WorkTree& tree, publish::Syncer& syncer, rebuild::Rebuilder& rebuilder, VersionSource versions,
             const FileSystemOptions& options);
  ~FileSystem();
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;

  // --- names (file_system.cpp) ---
  void lookup(Inode folder, const std::string& name, Take<Attributes> take);
  void forget(Inode inode, std::uint64_t count);
  Result<Attributes> get(Inode inode);
  void set(Inode inode, const AttributeSet& set, Take<Attributes> take);
  Result<std::string> read_link(Inode inode);
  Result<Attributes> make_folder(const publish::NewNode& node);
  Result<Attributes> make_symlink(const publish::NewNode& node, const std::string& target);
  Result<void> unlink(Inode folder, const std::string& name);
  Result<void> remove_folder(Inode folder, const std::string& name);
  Result<void> rename(Inode folder, const std::string& name, Inode new_folder, const std::string& new_name,
                      publish::RenameMode mode);
  void open_folder(Inode inode, Take<HandleId> take);
  /// Entries of an open folder; the position of an entry is its index.
  Result<HandlePtr> folder(HandleId handle) const;
  Result<SpaceInfo> space() const;
  /// `not_found` when there is no such attribute, `unsupported` for a name that cannot be set or read.
  Result<std::string> attribute(Inode inode, const std::string& name);
  std::vector<std::string> attribute_names(Inode inode);

  // --- bytes (file_system_data.cpp) ---
  Result<Created> create(const publish::NewNode& node, bool writable);
  /// Truncation on open is a set() of its own.
  Result<Opened> open(Inode inode, bool writable);
  void read(HandleId handle, ByteRange range, ReadDone done);
  /// Takes the bytes at once or copies them; they need not outlive the call.
  void write(HandleId handle, std::uint64_t offset, base::ByteView bytes, Done done);
  void allocate(HandleId handle, int mode, ByteRange range, Done done);
  /// close(2) of one descriptor.
  void flush(HandleId handle, Done done);
  /// The last descriptor and map of an open() are gone.
  void release(HandleId handle);
  void sync(HandleId handle, Done done);
  /// fsync of a folder: the names made so far survive power loss.
  Result<void> sync_names();

  /// Ends the workers, after the last request came in: what they do is finished first.
  void finish();
  /// For the syncer: see SyncHooks.
  bool has_writer(publish::NodeId id) const;
  std::uint64_t reads() const { return reads_.load(); }
  /// Reads that failed, newest first, a bounded number; for status.
  std::vector<publish::RecordedError> read_errors() const;

 private:
  Result<void> check_writable(Inode inode) const;
  Attributes attributes_of(const publish::Node& node);
  void count_lookup(Inode inode);
  void drop_if_unused(Inode inode);
  bool is_version_root(Inode inode, const std::string& name) const;

  Result<Opened> open_tree_file(Inode inode, bool writable);
  Result<Opened> open_view(Inode inode, bool writable);
  /// Gives an open node its bytes: the data file when staged, else the content to rebuild from.
  Result<void> attach(OpenNode& open, const publish::Node& node);
  Result<OpenNodePtr> writable_node(HandleId handle) const;
  /// Runs `then` when the node's bytes are in a data file and the write is noted. Of a published file the
  /// first `bytes_kept` bytes are copied first (all that a truncation leaves).
  void prepare_write(const OpenNodePtr& open, std::uint64_t bytes_kept, const Done& then);
  /// Notes a write in the journal; false when the node has to be staged first.
  Result<bool> note_write(OpenNode& open) HFD_REQUIRES(open.mutex);
  Result<void> stage(OpenNode& open, std::uint64_t bytes_kept);
  Result<void> fill_data(OpenNode& open, const base::Fd& data, std::uint64_t bytes);
  Result<void> settle(OpenNode& open, bool closes);
  void resize(Inode inode, std::uint64_t bytes, Done done);
  /// rebuilder_.read() that remembers failures.
  void rebuild(const rebuild::ContentRef& content, ByteRange range, ReadDone done);

  publish::WorkTree& tree_;
  publish::Syncer& syncer_;
  rebuild::Rebuilder& rebuilder_;
  Views views_;
  const FileSystemOptions options_;
  OpenFiles open_;
  std::atomic<std::uint64_t> reads_{0};

  mutable base::Mutex mutex_;
  std::deque<publish::RecordedError> read_errors_ HFD_GUARDED_BY(mutex_);
  std::unordered_map<Inode, std::uint64_t> lookups_ HFD_GUARDED_BY(mutex_);

  /// Copies old bytes into staging before a first write; waits for the remote where it must.
  std::unique_ptr<base::ThreadPool> stagers_;
  /// Looks up versions and refs on the remote.
  std::unique_ptr<base::ThreadPool> lookers_;
};

}  // namespace hfd::vfs
