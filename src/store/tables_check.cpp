// SPDX-License-Identifier: Apache-2.0
// The layout is that of LMDB 0.9 (mdb.c: MDB_page, MDB_node, MDB_db, MDB_meta), 64-bit, little
// endian. Offset, size, field:
//
//   page  0 8 page number  8 2 unused  10 2 flags  12 2 lower  14 2 upper  16 … node offsets
//         (2 bytes each; overflow pages: 12 4 count of pages)
//   node  0 4 data size, or low 32 bits of a page number  4 2 flags, or its high bits
//         6 2 key size  8 … key, data
//   db    0 4 pad  4 2 flags  6 2 depth  8 8 branch pages  16 8 leaf pages  24 8 overflow pages
//         32 8 entries  40 8 root
//   meta  0 4 magic  4 4 version  8 8 address  16 8 map bytes  24 48 free db  72 48 main db
//         120 8 last page  128 8 transaction
#include "store/tables_check.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/bytes.hpp"
#include "base/file.hpp"

namespace hfd::store {
namespace {

constexpr std::size_t page_header_bytes = 16;
constexpr std::size_t node_header_bytes = 8;
constexpr std::size_t db_bytes = 48;
constexpr std::size_t meta_bytes = 136;
constexpr std::uint16_t flag_branch = 1;
constexpr std::uint16_t flag_leaf = 2;
constexpr std::uint16_t flag_overflow = 4;
constexpr std::uint16_t flag_meta = 8;
constexpr std::uint16_t node_big = 1;
constexpr std::uint16_t node_table = 2;
constexpr std::uint32_t meta_magic = 0xBEEFC0DE;
constexpr std::uint64_t no_page = ~std::uint64_t{0};
constexpr int depth_max = 32;  // LMDB's CURSOR_STACK
constexpr std::uint64_t file_bytes_max = 8ULL << 30U;

Error damaged(std::string_view why) {
  return Error{ErrorCode::corrupt, "damaged tables: " + std::string(why)};
}

struct Db {
  std::uint16_t flags = 0;
  std::uint16_t depth = 0;
  std::uint64_t root = no_page;
};
Db load_db(const std::byte* at) {
  return {base::load_le<std::uint16_t>(at + 4), base::load_le<std::uint16_t>(at + 6),
          base::load_le<std::uint64_t>(at + 40)};
}

struct Node {
  std::uint32_t low = 0;
  std::uint16_t flags = 0;
  base::ByteView key;
  std::size_t data_at = 0;  ///< offset in the page
};

class Walk {
 public:
  Walk(const base::Fd& fd, std::size_t page_bytes, std::uint64_t last_page,
       std::uint64_t file_pages)
      : fd_(fd),
        page_bytes_(page_bytes),
        last_page_(last_page),
        file_pages_(file_pages),
        seen_(last_page + 1) {}

  /// `free_list` trees have 8-byte integer keys and lists of page numbers as values.
  Result<void> tree(const Db& db, bool free_list) {
    if (db.root == no_page) {
      return {};
    }
    if (db.depth == 0 || db.depth > depth_max) {
      return damaged("depth of a tree");
    }
    return page(db.root, db.depth, free_list);
  }

  /// A page that is free must not be in a tree, nor free twice.
  Result<void> check_free_pages() {
    for (const std::uint64_t number : free_) {
      HFD_TRY_VOID(claim(number));
    }
    return {};
  }

 private:
  Result<void> claim(std::uint64_t number) {
    if (number < 2 || number > last_page_) {
      return damaged("a page number out of range");
    }
    if (seen_[number]) {
      return damaged("a page used twice");
    }
    seen_[number] = true;
    return {};
  }

  Result<void> page(std::uint64_t number, int depth, bool free_list) {
    HFD_TRY_VOID(claim(number));
    if (number >= file_pages_) {
      return damaged("the file is cut short");
    }
    base::Bytes bytes(page_bytes_);
    HFD_TRY_VOID(base::read_exactly(fd_, number * page_bytes_, bytes, "tables"));
    const auto flags = base::load_le<std::uint16_t>(bytes.data() + 10);
    const auto lower = base::load_le<std::uint16_t>(bytes.data() + 12);
    const auto upper = base::load_le<std::uint16_t>(bytes.data() + 14);
    const bool leaf = depth == 1;
    if (base::load_le<std::uint64_t>(bytes.data()) != number ||
        flags != (leaf ? flag_leaf : flag_branch)) {
      return damaged("header of a page");
    }
    if (lower < page_header_bytes || lower > upper || upper > page_bytes_ || lower % 2 != 0) {
      return damaged("bounds of a page");
    }
    const std::size_t count = (lower - page_header_bytes) / 2U;
    if (count == 0 || (!leaf && count < 2)) {
      return damaged("an empty page");
    }
    return nodes(bytes, count, upper, depth, free_list);
  }

  Result<void> nodes(const base::Bytes& bytes, std::size_t count, std::size_t upper, int depth,
                     bool free_list) {
    base::ByteView before;
    for (std::size_t i = 0; i < count; ++i) {
      HFD_TRY(const Node node, node_at(bytes, i, upper));
      if (free_list ? !integer_key(node, depth, i)
                    : (i > (depth == 1 ? 0U : 1U) && !ascending(before, node.key))) {
        return damaged("order of keys");
      }
      before = node.key;
      if (depth == 1) {
        HFD_TRY_VOID(leaf_value(bytes, node, free_list));
      } else {
        const std::uint64_t child = node.low | (static_cast<std::uint64_t>(node.flags) << 32U);
        HFD_TRY_VOID(page(child, depth - 1, free_list));
      }
    }
    return {};
  }

  Result<Node> node_at(const base::Bytes& bytes, std::size_t i, std::size_t upper) const {
    const auto at = base::load_le<std::uint16_t>(bytes.data() + page_header_bytes + 2 * i);
    if (at < upper || at > page_bytes_ - node_header_bytes || at % 2 != 0) {
      return damaged("place of a node");
    }
    Node node;
    node.low = base::load_le<std::uint32_t>(bytes.data() + at);
    node.flags = base::load_le<std::uint16_t>(bytes.data() + at + 4);
    const auto key_bytes = base::load_le<std::uint16_t>(bytes.data() + at + 6);
    node.data_at = at + node_header_bytes + key_bytes;
    if (node.data_at > page_bytes_) {
      return damaged("size of a key");
    }
    node.key = base::ByteView(bytes).subspan(at + node_header_bytes, key_bytes);
    return node;
  }

  /// Branch pages: the first key is empty and means "from the start".
  static bool integer_key(const Node& node, int depth, std::size_t i) {
    return node.key.size() == 8 || (depth > 1 && i == 0);
  }
  static bool ascending(base::ByteView a, base::ByteView b) {
    return base::as_text(a) < base::as_text(b);
  }

  Result<void> leaf_value(const base::Bytes& bytes, const Node& node, bool free_list) {
    if ((node.flags & ~(node_big | node_table)) != 0) {
      return damaged("flags of a node");
    }
    if ((node.flags & node_big) != 0) {
      return overflow(bytes, node, free_list);
    }
    if (node.low > page_bytes_ - node.data_at) {
      return damaged("size of a value");
    }
    const base::ByteView value = base::ByteView(bytes).subspan(node.data_at, node.low);
    if ((node.flags & node_table) != 0) {
      if (free_list || value.size() != db_bytes) {
        return damaged("a table's record");
      }
      const Db db = load_db(value.data());
      return db.flags == 0 ? tree(db, false) : damaged("a table of an unknown kind");
    }
    return free_list ? free_pages(value) : Result<void>();
  }

  Result<void> overflow(const base::Bytes& bytes, const Node& node, bool free_list) {
    if (page_bytes_ - node.data_at < sizeof(std::uint64_t)) {
      return damaged("size of a value");
    }
    const auto first = base::load_le<std::uint64_t>(bytes.data() + node.data_at);
    const std::uint64_t count = (page_header_bytes + node.low + page_bytes_ - 1) / page_bytes_;
    if (first > last_page_ || count > last_page_ - first + 1 || first + count > file_pages_) {
      return damaged("a long value out of range");
    }
    base::Bytes value(static_cast<std::size_t>(page_header_bytes) + node.low);
    HFD_TRY_VOID(base::read_exactly(fd_, first * page_bytes_, value, "tables"));
    if (base::load_le<std::uint64_t>(value.data()) != first ||
        base::load_le<std::uint16_t>(value.data() + 10) != flag_overflow ||
        base::load_le<std::uint32_t>(value.data() + 12) < count) {
      return damaged("header of a long value");
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      HFD_TRY_VOID(claim(first + i));
    }
    return free_list ? free_pages(base::ByteView(value).subspan(page_header_bytes))
                     : Result<void>();
  }

  Result<void> free_pages(base::ByteView list) {
    if (list.size() < 8 || base::load_le<std::uint64_t>(list.data()) > list.size() / 8 - 1) {
      return damaged("a list of free pages");
    }
    const auto count = base::load_le<std::uint64_t>(list.data());
    for (std::uint64_t i = 1; i <= count; ++i) {
      free_.push_back(base::load_le<std::uint64_t>(list.data() + 8 * i));
    }
    return {};
  }

  const base::Fd& fd_;
  std::size_t page_bytes_;
  std::uint64_t last_page_;
  std::uint64_t file_pages_;
  std::vector<bool> seen_;
  std::vector<std::uint64_t> free_;
};

struct Meta {
  Db free;
  Db main;
  std::uint64_t last_page = 0;
  std::uint64_t transaction = 0;
  std::uint32_t page_bytes = 0;
};

Result<Meta> load_meta(base::ByteView page) {
  if (base::load_le<std::uint16_t>(page.data() + 10) != flag_meta) {
    return damaged("no meta page");
  }
  const std::byte* const at = page.data() + page_header_bytes;
  if (base::load_le<std::uint32_t>(at) != meta_magic || base::load_le<std::uint32_t>(at + 4) != 1) {
    return damaged("not an LMDB file");
  }
  return Meta{load_db(at + 24), load_db(at + 72), base::load_le<std::uint64_t>(at + 120),
              base::load_le<std::uint64_t>(at + 128), base::load_le<std::uint32_t>(at + 24)};
}

}  // namespace

Result<void> check_tables_file(const std::string& file) {
  const auto opened = base::open_file(file, O_RDONLY);
  if (!opened.ok()) {
    return opened.error().code == ErrorCode::not_found ? Result<void>() : opened.error();
  }
  const base::Fd& fd = *opened;
  HFD_TRY(const std::uint64_t size, base::file_bytes(fd, file));
  if (size == 0) {
    return {};
  }
  if (size > file_bytes_max) {
    return damaged("larger than such a file gets");
  }
  base::Bytes head(page_header_bytes + meta_bytes);
  HFD_TRY_VOID(base::read_exactly(fd, 0, head, file));
  HFD_TRY(const Meta first, load_meta(head));
  // The page size is what the meta page says in the free table's pad field.
  const std::size_t page_bytes = first.page_bytes;
  if (page_bytes < 512 || page_bytes > (64U << 10U) || (page_bytes & (page_bytes - 1)) != 0 ||
      size < 2 * page_bytes) {
    return damaged("page size");
  }
  HFD_TRY_VOID(base::read_exactly(fd, page_bytes, head, file));
  HFD_TRY(const Meta second, load_meta(head));
  const Meta& meta = second.transaction > first.transaction ? second : first;
  if (second.page_bytes != first.page_bytes || meta.last_page < 1 ||
      meta.last_page > file_bytes_max / page_bytes) {
    return damaged("last page");
  }
  Walk walk(fd, page_bytes, meta.last_page, size / page_bytes);
  HFD_TRY_VOID(walk.tree(meta.free, true));
  HFD_TRY_VOID(walk.tree(meta.main, false));
  return walk.check_free_pages();
}

}  // namespace hfd::store
