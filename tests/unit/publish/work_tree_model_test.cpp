// SPDX-License-Identifier: Apache-2.0
// Random operations on a work tree and on a plain map of paths; both must always say the same.
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "work_tree_fixture.hpp"

namespace hfd::publish {
namespace {

using test::Staging;
using test::TempFolder;
using test::version_of;

/// What a path is: a file's text, or a folder.
struct Thing {
  bool folder = false;
  std::string text;
  bool operator==(const Thing&) const = default;
};
using Model = std::map<std::string, Thing>;
using Texts = std::map<std::string, std::string>;

class ModelTest {
 public:
  ModelTest(const std::string& folder, unsigned seed) : staging_(folder), random_(seed) {}

  void step() {
    switch (below(16)) {
      case 0:
      case 1:
      case 2: create(); break;
      case 3:
      case 4: make_folder(); break;
      case 5:
      case 6:
      case 7: rename(); break;
      case 8: unlink(); break;
      case 9: remove_folder(); break;
      case 10:
      case 11: rewrite(); break;
      case 12: set_mode(); break;
      case 13: below(8) == 0 ? reopen() : create(); break;
      case 14: below(4) == 0 ? publish() : rewrite(); break;
      default: below(4) == 0 ? follow() : unlink(); break;
    }
  }

  void check() {
    Model seen;
    walk(root_node, "", seen);
    REQUIRE(seen == model_);
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::string text() { return std::string(below(20), 'x') + std::to_string(random_()); }

  /// A short path that may or may not exist, in a folder that may or may not.
  std::string path() {
    static const char* const names[] = {"a", "b", "c", "d"};
    std::string out = names[below(4)];
    for (unsigned depth = below(3); depth > 0; --depth) {
      out += std::string("/") + names[below(4)];
    }
    return out;
  }
  bool is_folder(const std::string& p) const {
    const auto found = model_.find(p);
    return p.empty() || (found != model_.end() && found->second.folder);
  }
  bool is_file(const std::string& p) const { return model_.count(p) > 0 && !model_.at(p).folder; }
  bool has_children(const std::string& p) const {
    const auto next = model_.lower_bound(p + "/");
    return next != model_.end() && next->first.starts_with(p + "/");
  }
  bool can_take(const std::string& p) const { return is_folder(Staging::split(p).first); }

  void create() {
    const std::string p = path();
    const auto made =
        can_take(p) ? staging_->create_file(staging_.new_node(p)) : Result<Node>(Error{});
    REQUIRE(made.ok() == (can_take(p) && model_.count(p) == 0));
    if (made.ok()) {
      const std::string bytes = text();
      staging_.write_bytes(made->id, bytes);
      REQUIRE(staging_->settled(made->id, std::nullopt, true).ok());
      model_[p] = {false, bytes};
    }
  }
  void make_folder() {
    const std::string p = path();
    if (can_take(p)) {
      REQUIRE(staging_->make_folder(staging_.new_node(p)).ok() == (model_.count(p) == 0));
      model_.try_emplace(p, Thing{true, {}});
    }
  }
  void unlink() {
    const std::string p = path();
    if (can_take(p)) {
      REQUIRE(staging_.unlink(p).ok() == is_file(p));
      if (is_file(p)) {
        model_.erase(p);
      }
    }
  }
  void remove_folder() {
    const std::string p = path();
    if (can_take(p)) {
      const auto [above, name] = Staging::split(p);
      const bool good = is_folder(p) && !has_children(p);
      REQUIRE(staging_->remove_folder(staging_.folder(above), name).ok() == good);
      if (good) {
        model_.erase(p);
      }
    }
  }
  bool may_rename(const std::string& from, const std::string& to) const {
    if (model_.count(from) == 0 || (is_folder(from) && to.starts_with(from + "/"))) {
      return false;
    }
    return model_.count(to) == 0 || from == to ||
           (is_folder(from) ? is_folder(to) && !has_children(to) : is_file(to));
  }
  void rename() {
    const std::string from = path();
    const std::string to = path();
    if (!can_take(from) || !can_take(to)) {
      return;
    }
    const bool good = may_rename(from, to);
    REQUIRE(staging_.rename(from, to).ok() == good);
    if (!good || from == to) {
      return;
    }
    model_.erase(to);
    Model moved;
    for (auto at = model_.begin(); at != model_.end();) {
      if (at->first == from || at->first.starts_with(from + "/")) {
        moved[to + at->first.substr(from.size())] = at->second;
        at = model_.erase(at);
      } else {
        ++at;
      }
    }
    model_.merge(moved);
  }
  void rewrite() {
    const std::string p = path();
    if (is_file(p)) {
      const std::string bytes = text();
      staging_.rewrite(p, bytes);
      model_[p].text = bytes;
    }
  }
  void set_mode() {
    const std::string p = path();
    if (model_.count(p) > 0) {
      AttributeChange change;
      change.mode = below(2) == 0 ? 0755 : 0644;
      REQUIRE(staging_->set_attributes(staging_.at(p).id, change).ok());
      REQUIRE(staging_.at(p).mode == *change.mode);
    }
  }
  void reopen() {
    const std::uint64_t generation = staging_->generation();
    staging_.reopen();
    REQUIRE(staging_->generation() == generation);
  }
  void publish() {
    const lineage::Version version = staging_.publish_all(++number_);
    for (const auto& [p, thing] : model_) {
      const Node node = staging_.at(p);
      REQUIRE((thing.folder || node.place == Place::published));
      if (!thing.folder) {
        contents_[node.content] = thing.text;
      }
    }
    REQUIRE(staging_.data_file_count() == 0);
    previous_ = version;
  }

  /// Somebody else's version appears: some files of ours changed, gone or new.
  void follow() {
    std::vector<lineage::FileEntry> files;
    const std::vector<lineage::FileEntry> before = previous_ ? previous_->manifest.files : files;
    for (lineage::FileEntry entry : before) {
      if (entry.kind != lineage::FileEntry::Kind::file || below(4) == 0) {
        continue;
      }
      if (below(3) == 0) {
        const std::string bytes = text();
        entry = test::file_entry(entry.path, bytes);
        contents_[entry.sha256] = bytes;
      }
      files.push_back(entry);
    }
    const std::string fresh = "theirs/" + std::to_string(number_);
    files.push_back(test::file_entry(fresh, fresh));
    contents_[files.back().sha256] = fresh;
    const lineage::Version next = version_of(++number_, files);
    follow_in_model(before, next);
    REQUIRE(staging_->switch_to(previous_ ? &*previous_ : nullptr, next).ok());
    previous_ = next;
  }

  std::string text_of(const lineage::FileEntry& entry) const { return contents_.at(entry.sha256); }

  /// The rules of switch_to once more, on paths alone.
  void follow_in_model(const std::vector<lineage::FileEntry>& before,
                       const lineage::Version& next) {
    std::set<std::string> emptied;
    for (const auto& b : before) {
      const auto* const a = find(next, b.path);
      if (a == nullptr) {
        remove_in_model(b, emptied);
      }
    }
    for (auto p = emptied.rbegin(); p != emptied.rend(); ++p) {
      if (is_folder(*p) && !has_children(*p) && !needs_folder(next, *p)) {
        model_.erase(*p);
      }
    }
    for (const auto& a : next.manifest.files) {
      const auto* const b = find_in(before, a.path);
      if (b != nullptr && b->sha256 == a.sha256) {
        continue;
      }
      const auto here = model_.find(a.path);
      const bool was_theirs = b != nullptr && here != model_.end() && is_as(here->first, *b);
      if (here == model_.end() ? parents_are_free(a.path) : was_theirs) {
        add_in_model(a.path, text_of(a));
      }
    }
  }
  void remove_in_model(const lineage::FileEntry& b, std::set<std::string>& emptied) {
    for (std::string above = Staging::split(b.path).first; !above.empty();
         above = Staging::split(above).first) {
      emptied.insert(above);
    }
    if (b.kind == lineage::FileEntry::Kind::folder) {
      if (is_folder(b.path) && !has_children(b.path)) {
        emptied.insert(b.path);
      }
    } else if (is_as(b.path, b)) {
      model_.erase(b.path);
    }
  }
  /// Published bytes that nobody touched here. The tree itself is asked for the place: the model
  /// does not know whether equal text was written again.
  bool is_as(const std::string& p, const lineage::FileEntry& entry) const {
    if (!is_file(p)) {
      return false;
    }
    const Node node = staging_.at(p);
    return node.place == Place::published && node.content == entry.sha256;
  }
  bool parents_are_free(const std::string& p) const {
    for (std::string above = Staging::split(p).first; !above.empty();
         above = Staging::split(above).first) {
      if (is_file(above)) {
        return false;
      }
    }
    return true;
  }
  void add_in_model(const std::string& p, const std::string& bytes) {
    for (std::string above = Staging::split(p).first; !above.empty();
         above = Staging::split(above).first) {
      model_.try_emplace(above, Thing{true, {}});
    }
    model_[p] = {false, bytes};
  }
  static const lineage::FileEntry* find_in(const std::vector<lineage::FileEntry>& files,
                                           const std::string& p) {
    for (const auto& entry : files) {
      if (entry.path == p) {
        return &entry;
      }
    }
    return nullptr;
  }
  static const lineage::FileEntry* find(const lineage::Version& version, const std::string& p) {
    return find_in(version.manifest.files, p);
  }
  static bool needs_folder(const lineage::Version& version, const std::string& p) {
    for (const auto& entry : version.manifest.files) {
      if (entry.path.starts_with(p + "/")) {
        return true;
      }
    }
    return false;
  }

  void walk(NodeId folder, const std::string& prefix, Model& seen) {
    const auto nodes = staging_->list(folder, "", 1000);
    REQUIRE(nodes.ok());
    for (const Node& node : *nodes) {
      const std::string p = prefix + node.name;
      REQUIRE(node.parent == folder);
      if (node.kind == NodeKind::folder) {
        seen[p] = {true, {}};
        walk(node.id, p + "/", seen);
      } else if (node.place == Place::staged) {
        seen[p] = {false, staging_.staged_text(node.id)};
        REQUIRE(seen[p].text.size() == node.bytes);
      } else {
        seen[p] = {false, contents_.at(node.content)};
        REQUIRE(seen[p].text.size() == node.bytes);
      }
    }
  }

  Staging staging_;
  std::mt19937_64 random_;
  Model model_;
  std::map<ContentHash, std::string> contents_;
  std::optional<lineage::Version> previous_;
  unsigned number_ = 0;
};

TEST_SUITE("publish/work_tree_model") {
  TEST_CASE("random operations leave the tree and a map of paths equal") {
    const char* const given_seed = std::getenv("HFD_TEST_SEED");
    const char* const given_count = std::getenv("HFD_TEST_OPERATIONS");
    const unsigned seed = given_seed != nullptr ? static_cast<unsigned>(std::atol(given_seed))
                                                : std::random_device{}();
    const int count = given_count != nullptr ? std::atoi(given_count) : 3000;
    MESSAGE("seed " << seed << " (HFD_TEST_SEED), " << count
                    << " operations (HFD_TEST_OPERATIONS)");
    const TempFolder temp;
    ModelTest test(temp / "s", seed);
    for (int i = 0; i < count; ++i) {
      test.step();
      if (i % 20 == 0) {
        test.check();
      }
    }
    test.check();
  }
}

}  // namespace
}  // namespace hfd::publish
