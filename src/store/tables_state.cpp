// SPDX-License-Identifier: Apache-2.0
#include "store/tables_state.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hash.hpp"

namespace hfd::store {
namespace {

constexpr std::string_view magic = "hfdstat1";
constexpr std::size_t boot_bytes = 36;
constexpr std::size_t header_bytes = 64;
constexpr std::size_t hash_bytes = 16;
constexpr std::size_t page_bytes_max = 32U << 10U;  // LMDB's own limit
constexpr std::size_t slot_bytes = 128U << 10U;     // sparse: two pages of the largest size fit
constexpr std::uint32_t flag_closed_well = 1;

/// The kernel's name for this run of the machine. An empty one (no /proc) never equals a recorded
/// one, so the tables go back to the synced state: the safe side.
std::string present_boot() {
  const auto fd = base::open_file("/proc/sys/kernel/random/boot_id", O_RDONLY);
  if (!fd.ok()) {
    return {};
  }
  std::string text(boot_bytes, '\0');
  const auto read = base::read_up_to(
      *fd, 0, std::as_writable_bytes(std::span(text.data(), text.size())), "boot_id");
  return read.ok() && *read == boot_bytes ? text : std::string();
}

struct Slot {
  std::uint64_t sequence = 0;
  std::string boot;
  bool closed_well = false;
  base::Bytes pages;
};

base::Bytes encode_slot(const Slot& slot) {
  base::Bytes out;
  base::append(out, base::as_bytes(magic));
  base::append_le(out, slot.sequence);
  std::string boot = slot.boot;
  boot.resize(boot_bytes);
  base::append(out, base::as_bytes(boot));
  base::append_le(out, slot.closed_well ? flag_closed_well : 0U);
  base::append_le(out, static_cast<std::uint32_t>(slot.pages.size() / 2));
  base::append_le(out, std::uint32_t{0});
  base::append(out, slot.pages);
  base::append(out, base::xxh3_128(out));
  return out;
}

/// Nothing when the slot was never written or a crash tore it: the other one counts then.
std::optional<Slot> decode_slot(base::ByteView bytes) {
  if (bytes.size() < header_bytes + hash_bytes ||
      base::as_text(bytes.first(magic.size())) != magic) {
    return std::nullopt;
  }
  const std::size_t page = base::load_le<std::uint32_t>(bytes.data() + 56);
  if (page > page_bytes_max || bytes.size() < header_bytes + 2 * page + hash_bytes) {
    return std::nullopt;
  }
  const std::size_t hashed = header_bytes + 2 * page;
  const base::Xxh128 hash = base::xxh3_128(bytes.first(hashed));
  if (!std::equal(hash.begin(), hash.end(), bytes.begin() + static_cast<std::ptrdiff_t>(hashed))) {
    return std::nullopt;
  }
  Slot slot;
  slot.sequence = base::load_le<std::uint64_t>(bytes.data() + 8);
  slot.boot = base::as_text(bytes.subspan(16, boot_bytes));
  slot.closed_well = (base::load_le<std::uint32_t>(bytes.data() + 52) & flag_closed_well) != 0;
  base::append(slot.pages, bytes.subspan(header_bytes, 2 * page));
  return slot;
}

}  // namespace

Result<std::unique_ptr<TablesState>> TablesState::open(const std::string& folder) {
  std::string name = folder + "/state";
  HFD_TRY(base::Fd fd, base::open_file(name, O_RDWR | O_CREAT));
  std::unique_ptr<TablesState> state(new TablesState(std::move(fd), std::move(name)));
  if (::flock(state->fd_.get(), LOCK_EX | LOCK_NB) == 0) {
    state->first_ = true;
  } else if (::flock(state->fd_.get(), LOCK_SH) !=
             0) {  // waits only for another one's open() or close
    return base::os_error(errno, "cannot lock", state->name_);
  }
  HFD_TRY_VOID(state->load());
  return state;
}

Result<void> TablesState::load() {
  base::Bytes bytes(slot_bytes);
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{slot_bytes}}) {
    HFD_TRY(const std::size_t size, base::read_up_to(fd_, at, bytes, name_));
    auto slot = decode_slot(base::ByteView(bytes).first(size));
    if (slot && (!known_ || slot->sequence > sequence_)) {
      known_ = true;
      sequence_ = slot->sequence;
      boot_ = std::move(slot->boot);
      closed_well_ = slot->closed_well;
      pages_ = std::move(slot->pages);
    }
  }
  return {};
}

bool TablesState::power_was_lost() const {
  return first_ && known_ && !closed_well_ && (boot_.empty() || boot_ != present_boot());
}

Result<void> TablesState::record(base::ByteView pages, bool closed_well) {
  Slot slot{sequence_ + 1, present_boot(), closed_well, {}};
  base::append(slot.pages, pages);
  HFD_TRY_VOID(
      base::write_exactly(fd_, (slot.sequence % 2) * slot_bytes, encode_slot(slot), name_));
  if (::fdatasync(fd_.get()) != 0) {
    return base::os_error(errno, "cannot sync", name_);
  }
  sequence_ = slot.sequence;
  known_ = true;
  boot_ = std::move(slot.boot);
  closed_well_ = closed_well;
  pages_ = std::move(slot.pages);
  return {};
}

Result<void> TablesState::settle() {
  if (::flock(fd_.get(), LOCK_SH) != 0) {
    return base::os_error(errno, "cannot lock", name_);
  }
  return {};
}

bool TablesState::become_last() { return ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0; }

}  // namespace hfd::store
