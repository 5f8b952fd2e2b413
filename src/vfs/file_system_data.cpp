// SPDX-License-Identifier: Apache-2.0
// Bytes: open, read, write, close. A file of the work tree is read from its data file when staged, else
// rebuilt from its content; the first write to a published file copies its bytes into staging.
//
// OpenNode::mutex is held across the journal's short transactions (not across copies or remote reads):
// a write noted and a close settled for the same node must not pass each other.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vfs/file_system.hpp"

namespace hfd::vfs {
namespace {

/// Unit of copying old bytes into staging.
constexpr std::uint64_t copy_bytes = 4ULL << 20U;
constexpr std::size_t read_errors_max = 32;
constexpr const char* staged_name = "staged file";

Error no_such_handle() { return Error{ErrorCode::invalid_argument, "no such open file"}; }

ByteRange clip(ByteRange range, std::uint64_t bytes) {
  const std::uint64_t offset = std::min(range.offset, bytes);
  return {offset, std::min(range.size, bytes - offset)};
}

/// The data file of a staged node.
SharedFd data_of(OpenNode& open) {
  const base::Lock lock(open.mutex);
  return open.data;
}

}  // namespace

// --- open and create -------------------------------------------------------------------------

Result<void> FileSystem::attach(OpenNode& open, const publish::Node& node) {
  const base::Lock lock(open.mutex);
  if (node.place == publish::Place::staged) {
    if (!open.data) {
      HFD_TRY(base::Fd data, tree_.open_data(node.id));
      open.data = std::make_shared<const base::Fd>(std::move(data));
    }
    return {};
  }
  if (!open.content && !open.data) {
    lineage::VersionPtr version = syncer_.version_with(node.content);
    if (!version) {
      return Error{ErrorCode::stale, "the file belongs to a version that was left behind", node.name};
    }
    open.content = rebuild::ContentRef{std::move(version), node.content};
    open.content_bytes = node.bytes;
  }
  return {};
}

Result<Created> FileSystem::create(const publish::NewNode& node, bool writable) {
  HFD_TRY_VOID(check_writable(node.parent));
  if (is_version_root(node.parent, node.name)) {
    return Error{ErrorCode::permission, "the name is taken", node.name};
  }
  HFD_TRY(const publish::Node made, tree_.create_file(node));
  Handle handle;
  handle.inode = made.id;
  handle.writable = writable;
  handle.node = open_.open_node(made.id);
  HFD_TRY_VOID(attach(*handle.node, made));
  {
    const base::Lock lock(handle.node->mutex);
    handle.node->dirty = true;  // create_file() noted it
    handle.node->writers += writable ? 1 : 0;
  }
  count_lookup(made.id);
  return Created{attributes_of(made), open_.add(std::move(handle))};
}

Result<Opened> FileSystem::open(Inode inode, bool writable) {
  return Views::is_view(inode) ? open_view(inode, writable) : open_tree_file(inode, writable);
}

Result<Opened> FileSystem::open_view(Inode inode, bool writable) {
  if (writable) {
    HFD_TRY_VOID(check_writable(inode));
  }
  Handle handle;
  handle.inode = inode;
  if (inode == status_inode) {
    handle.text = views_.status_text();
    return Opened{open_.add(std::move(handle)), true};
  }
  HFD_TRY(handle.content, views_.content(inode));
  HFD_TRY(const Attributes attributes, views_.get(inode));
  handle.content_bytes = attributes.bytes;
  return Opened{open_.add(std::move(handle)), false};
}

Result<Opened> FileSystem::open_tree_file(Inode inode, bool writable) {
  if (writable) {
    HFD_TRY_VOID(check_writable(inode));
  }
  HFD_TRY(const publish::Node node, tree_.get(inode));
  if (node.kind != NodeKind::file) {
    return Error{ErrorCode::invalid_argument, "not a file", node.name};
  }
  Handle handle;
  handle.inode = inode;
  handle.writable = writable;
  handle.node = open_.open_node(inode);
  HFD_TRY_VOID(attach(*handle.node, node));
  if (writable) {
    const base::Lock lock(handle.node->mutex);
    ++handle.node->writers;
  }
  return Opened{open_.add(std::move(handle)), false};
}

// --- read ------------------------------------------------------------------------------------

void FileSystem::read(HandleId id, ByteRange range, ReadDone done) {
  reads_.fetch_add(1, std::memory_order_relaxed);
  const HandlePtr handle = open_.find(id);
  if (!handle) {
    done(no_such_handle());
    return;
  }
  if (handle->inode == status_inode) {
    const ByteRange part = clip(range, handle->text.size());
    done(base::to_bytes(std::string_view(handle->text).substr(part.offset, part.size)));
    return;
  }
  if (!handle->node) {
    rebuild(*handle->content, clip(range, handle->content_bytes), std::move(done));
    return;
  }
  SharedFd data;
  std::optional<rebuild::ContentRef> content;
  std::uint64_t content_bytes_now = 0;
  {
    const base::Lock lock(handle->node->mutex);
    data = handle->node->data;
    content = handle->node->content;
    content_bytes_now = handle->node->content_bytes;
  }
  if (!data) {
    rebuild(*content, clip(range, content_bytes_now), std::move(done));
    return;
  }
  base::Bytes bytes(range.size);
  const auto got = base::read_up_to(*data, range.offset, bytes, staged_name);
  if (!got.ok()) {
    done(got.error());
    return;
  }
  bytes.resize(*got);
  done(std::move(bytes));
}

void FileSystem::rebuild(const rebuild::ContentRef& content, ByteRange range, ReadDone done) {
  rebuilder_.read(content, range, [this, done = std::move(done)](Result<base::Bytes> bytes) {
    if (!bytes.ok()) {
      const base::Lock lock(mutex_);
      read_errors_.push_front({base::now_utc(), bytes.error()});
      if (read_errors_.size() > read_errors_max) {
        read_errors_.pop_back();
      }
    }
    done(std::move(bytes));
  });
}

std::vector<publish::RecordedError> FileSystem::read_errors() const {
  const base::Lock lock(mutex_);
  return {read_errors_.begin(), read_errors_.end()};
}

// --- write -----------------------------------------------------------------------------------

Result<OpenNodePtr> FileSystem::writable_node(HandleId id) const {
  const HandlePtr handle = open_.find(id);
  if (!handle || !handle->node || !handle->writable) {
    return no_such_handle();
  }
  return handle->node;
}

Result<bool> FileSystem::note_write(OpenNode& open) {
  if (!open.data) {
    return false;
  }
  if (open.dirty) {
    return true;
  }
  // A publish may have made the node `published` since the last close: then its row has no data file and
  // ours is the one that was dropped. begin_writing() and published() are transactions, so one is first.
  const auto noted = tree_.begin_writing(open.id);
  if (noted.ok()) {
    open.dirty = true;
    return true;
  }
  if (noted.error().code == ErrorCode::invalid_argument || noted.error().code == ErrorCode::stale) {
    return false;
  }
  return noted.error();
}

void FileSystem::prepare_write(const OpenNodePtr& open, std::uint64_t bytes_kept, const Done& then) {
  bool wait = false;
  Result<bool> ready = false;
  {
    const base::Lock lock(open->mutex);
    ready = note_write(*open);
    if (ready.ok() && !*ready) {
      wait = open->staging;
      open->staging = true;
      if (wait) {
        open->waiting.push_back(then);
      }
    }
  }
  if (!ready.ok()) {
    then(ready.error());
    return;
  }
  if (*ready) {
    then({});
    return;
  }
  if (wait) {
    return;
  }
  const auto work = [this, open, bytes_kept, then] {
    auto staged = stage(*open, bytes_kept);
    std::vector<Done> waiting;
    {
      const base::Lock lock(open->mutex);
      open->staging = false;
      waiting.swap(open->waiting);
    }
    then(staged);
    for (const Done& other : waiting) {
      other(staged);
    }
  };
  if (bytes_kept == 0) {
    work();  // nothing to copy: local and short
  } else {
    stagers_->post(work);
  }
}

Result<void> FileSystem::stage(OpenNode& open, std::uint64_t bytes_kept) {
  HFD_TRY([[maybe_unused]] const publish::Node node,
          tree_.stage(open.id, bytes_kept,
                      [&](const base::Fd& data) { return fill_data(open, data, bytes_kept); }));
  HFD_TRY(base::Fd data, tree_.open_data(open.id));
  const base::Lock lock(open.mutex);
  open.data = std::make_shared<const base::Fd>(std::move(data));
  HFD_TRY_VOID(tree_.begin_writing(open.id));
  open.dirty = true;
  return {};
}

Result<void> FileSystem::fill_data(OpenNode& open, const base::Fd& data, std::uint64_t bytes) {
  SharedFd old_data;
  std::optional<rebuild::ContentRef> content;
  {
    const base::Lock lock(open.mutex);
    old_data = open.data;
    content = open.content;
  }
  for (std::uint64_t offset = 0; offset < bytes; offset += copy_bytes) {
    const ByteRange range{offset, std::min(copy_bytes, bytes - offset)};
    base::Bytes piece(range.size);
    if (old_data) {
      HFD_TRY_VOID(base::read_exactly(*old_data, range.offset, piece, staged_name));
    } else {
      HFD_TRY(piece, rebuilder_.read_blocking(*content, range));
    }
    HFD_TRY_VOID(base::write_exactly(data, range.offset, piece, staged_name));
  }
  return {};
}

void FileSystem::write(HandleId id, std::uint64_t offset, base::ByteView bytes, Done done) {
  const auto open = writable_node(id);
  if (!open.ok()) {
    done(open.error());
    return;
  }
  SharedFd data;
  std::uint64_t bytes_kept = 0;
  {
    const base::Lock lock((*open)->mutex);
    const auto ready = note_write(**open);
    if (!ready.ok()) {
      done(ready.error());
      return;
    }
    data = *ready ? (*open)->data : nullptr;
    bytes_kept = (*open)->content_bytes;
  }
  if (data) {
    done(base::write_exactly(*data, offset, bytes, staged_name));
    return;
  }
  if (const auto node = tree_.get((*open)->id); node.ok()) {
    bytes_kept = node->bytes;
  }
  auto copy = std::make_shared<base::Bytes>(bytes.begin(), bytes.end());
  prepare_write(*open, bytes_kept, [open = *open, offset, copy, done = std::move(done)](Result<void> staged) {
    if (!staged.ok()) {
      done(std::move(staged));
      return;
    }
    done(base::write_exactly(*data_of(*open), offset, *copy, staged_name));
  });
}

void FileSystem::allocate(HandleId id, int mode, ByteRange range, Done done) {
  const auto open = writable_node(id);
  if (!open.ok()) {
    done(open.error());
    return;
  }
  const auto node = tree_.get((*open)->id);
  if (!node.ok()) {
    done(node.error());
    return;
  }
  prepare_write(*open, node->bytes, [open = *open, mode, range, done = std::move(done)](Result<void> staged) {
    if (!staged.ok()) {
      done(std::move(staged));
      return;
    }
    const SharedFd data = data_of(*open);
    if (::fallocate(data->get(), mode, static_cast<off_t>(range.offset), static_cast<off_t>(range.size)) != 0) {
      done(base::os_error(errno, "cannot allocate", staged_name));
      return;
    }
    done({});
  });
}

void FileSystem::resize(Inode inode, std::uint64_t bytes, Done done) {
  const auto node = tree_.get(inode);
  if (!node.ok()) {
    done(node.error());
    return;
  }
  if (node->kind != NodeKind::file) {
    done(Error{ErrorCode::invalid_argument, "not a file", node->name});
    return;
  }
  const OpenNodePtr open = open_.open_node(inode);
  if (auto attached = attach(*open, *node); !attached.ok()) {
    done(std::move(attached));
    return;
  }
  prepare_write(open, std::min(bytes, node->bytes), [this, open, bytes, done](Result<void> staged) {
    if (!staged.ok()) {
      done(std::move(staged));
      return;
    }
    const SharedFd data = data_of(*open);
    if (::ftruncate(data->get(), static_cast<off_t>(bytes)) != 0) {
      done(base::os_error(errno, "cannot resize", staged_name));
      return;
    }
    // truncate(2) of a file that nobody has open for writing is complete by itself.
    done(settle(*open, false));
  });
}

// --- close -----------------------------------------------------------------------------------

/// Brings the row up to date with the data file. The write is over when no writer is left, not counting
/// one that is `closes`-ing now.
Result<void> FileSystem::settle(OpenNode& open, bool closes) {
  const base::Lock lock(open.mutex);
  if (!open.dirty) {
    return {};
  }
  const bool closed = open.writers <= (closes ? 1U : 0U);
  HFD_TRY([[maybe_unused]] const publish::Node node, tree_.settled(open.id, std::nullopt, closed));
  open.dirty = !closed;
  return {};
}

void FileSystem::flush(HandleId id, Done done) {
  const auto open = writable_node(id);
  if (!open.ok()) {
    done({});  // a reader's close has nothing to say
    return;
  }
  auto settled = settle(**open, true);
  if (!settled.ok() || !options_.sync_on_close) {
    done(std::move(settled));
    return;
  }
  stagers_->post([this, done = std::move(done)] {
    const auto committed = syncer_.commit({}, base::deadline_in(options_.deadline));
    // A set that waits for more files is not a failure of this close.
    const bool fine = committed.ok() || committed.error().code == ErrorCode::incomplete;
    done(fine ? Result<void>() : Result<void>(committed.error()));
  });
}

void FileSystem::release(HandleId id) {
  HandlePtr handle = open_.remove(id);
  if (!handle || !handle->node) {
    return;
  }
  if (handle->writable) {
    {
      const base::Lock lock(handle->node->mutex);
      --handle->node->writers;
    }
    // Stores through a shared map can come after the last close(); there is nobody left to tell of a failure.
    [[maybe_unused]] const auto settled = settle(*handle->node, false);
  }
  const Inode inode = handle->inode;
  handle.reset();
  drop_if_unused(inode);
}

void FileSystem::sync(HandleId id, Done done) {
  const auto open = writable_node(id);
  if (!open.ok()) {
    done({});
    return;
  }
  {
    const base::Lock lock((*open)->mutex);
    if ((*open)->dirty) {
      auto noted = tree_.settled((*open)->id, std::nullopt, false);
      if (!noted.ok()) {
        done(std::move(noted).error());
        return;
      }
    }
  }
  const auto node = tree_.get((*open)->id);
  const bool staged = node.ok() && node->place == publish::Place::staged;
  done(staged ? tree_.sync((*open)->id) : Result<void>());
}

Result<void> FileSystem::sync_names() { return tree_.sync(root_inode); }

bool FileSystem::has_writer(publish::NodeId id) const {
  const OpenNodePtr open = open_.find_node(id);
  if (!open) {
    return false;
  }
  const base::Lock lock(open->mutex);
  return open->writers > 0;
}

}  // namespace hfd::vfs
