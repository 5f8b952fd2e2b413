// SPDX-License-Identifier: Apache-2.0
// The one interface to where objects live: a folder today; Hub repos, Hub buckets, S3 and HTTP
// later. Object names are relative paths ("hfdelta/deltas/<id>.hfd"), already validated by callers,
// segments joined by "/". Bulk reads are asynchronous so that a slow remote never holds a thread of
// a reader; the control calls (head, list, put) block and are made by publish, follow and CLI
// threads only. A remote never interprets what it stores. All calls are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hfdeltafs/types.hpp"

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/file.hpp"

namespace hfd::remote {

struct ObjectInfo {
  std::string name;
  std::uint64_t bytes = 0;
  base::UnixNanoseconds mtime = 0;
};

/// What a remote can do; callers choose their protocol by it.
struct Capabilities {
  bool put_if_absent = false;  ///< exactly one of several writers of one name wins
  bool watch = false;          ///< watch() reports changes by itself
  bool writable = false;
};

struct Counters {
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> bytes_in{0};
  std::atomic<std::uint64_t> bytes_out{0};
};

/// Given the bytes asked for, exactly, or an error. Called once, from any thread, with no lock held
/// by the remote; must not block.
using ReadDone = std::function<void(Result<base::Bytes>)>;

/// Ends its subscription when destroyed; no call-back runs after that.
class Watch {
 public:
  Watch() = default;
  virtual ~Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
};

class Remote {
 public:
  Remote() = default;
  virtual ~Remote() = default;
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  /// Canonical URI, without secrets: "file:///data/bucket".
  virtual const std::string& uri() const = 0;
  virtual Capabilities capabilities() const = 0;

  /// Reads exactly `range`. A shorter object is `corrupt`, a missing one not_found, no answer by
  /// `deadline` unavailable. Never waits: the answer comes through `done`.
  virtual void read(const std::string& name, ByteRange range, base::Deadline deadline,
                    ReadDone done) = 0;

  virtual Result<ObjectInfo> head(const std::string& name) = 0;
  /// All objects whose name starts with `prefix` + "/", at any depth, sorted by name. An absent
  /// prefix is an empty list.
  virtual Result<std::vector<ObjectInfo>> list(const std::string& prefix) = 0;
  /// Writes a whole object, replacing any; readers see all of it or nothing. Durable when it
  /// returns.
  virtual Result<void> put(const std::string& name, base::ReadableBytes& content) = 0;
  /// The same, but `already_exists` when the name is taken. Only with capabilities().put_if_absent.
  virtual Result<void> put_if_absent(const std::string& name, base::ByteView content) = 0;
  /// A path of this machine at which the object can be opened directly, if there is one. For work
  /// that reads a base whole anyway (hashing it); not counted as remote traffic.
  virtual std::optional<std::string> local_path(const std::string& name) const = 0;
  /// A missing object is fine.
  virtual Result<void> remove(const std::string& name) = 0;

  /// Calls `changed` (from a thread of the remote, at least once after each change, maybe more
  /// often) when something under `prefix` may have changed. nullptr when the remote cannot.
  virtual std::unique_ptr<Watch> watch(const std::string& prefix,
                                       std::function<void()> changed) = 0;

  const Counters& counters() const { return counters_; }

 protected:
  Counters counters_;
};

/// read() for control paths: blocks the caller until the answer is there. Never for FUSE threads.
Result<base::Bytes> read_blocking(Remote& remote, const std::string& name, ByteRange range,
                                  base::Deadline deadline);
/// head + read of a small object; larger than `bytes_max` is `corrupt`.
Result<base::Bytes> read_whole(Remote& remote, const std::string& name, std::uint64_t bytes_max,
                               base::Deadline deadline);

/// What a SOURCE or URI on the command line means (interface.md, "Naming things").
enum class UriKind { folder, hub_repo, hub_bucket, s3, http };
struct ParsedUri {
  UriKind kind = UriKind::folder;
  std::string canonical;  ///< "file:///abs/path", "hf://…"
  std::string path;       ///< folder: absolute path
};
/// Pure apart from turning a relative path into an absolute one (getcwd, HOME). invalid_argument
/// for nonsense.
Result<ParsedUri> parse_uri(const std::string& text);

/// Opens a remote. A folder need not exist yet when `create`; otherwise a missing one is not_found.
/// Kinds that come with a later issue: unsupported, saying so.
Result<std::unique_ptr<Remote>> open_remote(const ParsedUri& uri, bool create);

}  // namespace hfd::remote
