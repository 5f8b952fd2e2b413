// SPDX-License-Identifier: Apache-2.0
#include "vfs/views.hpp"

#include <doctest/doctest.h>

#include "publish/work_tree_fixture.hpp"

namespace hfd::vfs {
namespace {

using Kind = lineage::FileEntry::Kind;

/// Two versions and refs with and without slashes; loads are counted.
struct TwoViews {
  lineage::VersionPtr first;
  lineage::VersionPtr second;
  std::vector<std::pair<std::string, VersionId>> refs;
  std::string status = "{}";
  bool remote_is_down = false;
  int version_loads = 0;
  Views views;

  TwoViews() : views(source(), 11, 22) {
    lineage::FileEntry run = test::file_entry("bin/run", "#!");
    run.executable = true;
    run.mtime = 1'500'000'000;
    lineage::FileEntry link = test::file_entry("link", "");
    link.kind = Kind::symlink;
    link.symlink_target = "bin/run";
    first = std::make_shared<const lineage::Version>(test::version_of(1, std::vector<lineage::FileEntry>{run, link}));
    second = std::make_shared<const lineage::Version>(test::version_of(2, std::vector<lineage::FileEntry>{run}));
    refs = {{"main", second->id}, {"runs/a/b", first->id}, {"runs/c", second->id}, {"tags/v1", first->id}};
  }
  VersionSource source() {
    return {[this](const VersionId& id) -> Result<lineage::VersionPtr> {
              ++version_loads;
              for (const lineage::VersionPtr& version : {first, second}) {
                if (version->id == id) {
                  return version;
                }
              }
              return Error{ErrorCode::not_found, "no such version", id.hex()};
            },
            [this]() -> Result<std::vector<VersionId>> {
              if (remote_is_down) {
                return Error{ErrorCode::unavailable, "no answer"};
              }
              return std::vector<VersionId>{first->id, second->id};
            },
            [this]() -> Result<std::vector<std::pair<std::string, VersionId>>> {
              if (remote_is_down) {
                return Error{ErrorCode::unavailable, "no answer"};
              }
              return refs;
            },
            [this] { return status; }};
  }
  Attributes at(Inode folder, const std::string& name) {
    const auto found = views.lookup(folder, name);
    INFO("name " << name);
    REQUIRE(found.ok());
    CHECK(Views::is_view(found->inode));
    return *found;
  }
  Inode version_root(const lineage::VersionPtr& version) {
    return at(versions_folder_inode, version->id.hex()).inode;
  }
  std::string names(Inode folder) {
    const auto entries = views.list(folder);
    REQUIRE(entries.ok());
    std::string text;
    for (const FolderEntry& entry : *entries) {
      text += entry.name;
      text += entry.kind == NodeKind::folder ? "/ " : entry.kind == NodeKind::symlink ? "@ " : " ";
    }
    return text;
  }
};

TEST_SUITE("vfs/views") {
  TEST_CASE("the control folder has refs, status and versions") {
    TwoViews f;
    CHECK(f.names(control_folder_inode) == "refs/ status.json versions/ ");
    CHECK(f.at(control_folder_inode, "versions").inode == versions_folder_inode);
    CHECK(f.at(control_folder_inode, "refs").inode == refs_folder_inode);
    CHECK(f.at(control_folder_inode, "status.json").inode == status_inode);
    CHECK(f.views.lookup(control_folder_inode, "other").error().code == ErrorCode::not_found);
  }

  TEST_CASE("the status is a file as long as its text, trusted not at all") {
    TwoViews f;
    f.status = "twelve bytes";
    const auto attributes = f.views.get(status_inode);
    REQUIRE(attributes.ok());
    CHECK(attributes->kind == NodeKind::file);
    CHECK(attributes->bytes == 12);
    CHECK(attributes->mode == 0444U);
    CHECK(attributes->valid.count() == 0);
    CHECK(f.views.status_text() == "twelve bytes");
  }

  TEST_CASE("versions are folders named by their whole id") {
    TwoViews f;
    CHECK(f.names(versions_folder_inode) == f.first->id.hex() + "/ " + f.second->id.hex() + "/ ");
    const Attributes root = f.at(versions_folder_inode, f.first->id.hex());
    CHECK(root.kind == NodeKind::folder);
    CHECK(root.mode == 0555U);
    CHECK(root.uid == 11);
    CHECK(root.gid == 22);
    CHECK(f.names(root.inode) == "bin/ link@ ");
  }

  TEST_CASE("short, upper-case and unknown ids are not found") {
    TwoViews f;
    std::string upper = f.first->id.hex();
    for (char& c : upper) {
      c = static_cast<char>(std::toupper(c));
    }
    for (const std::string& name :
         {f.first->id.hex().substr(0, 12), upper, std::string(64, '0'), std::string("main"), std::string()}) {
      INFO("name " << name);
      const auto found = f.views.lookup(versions_folder_inode, name);
      REQUIRE_FALSE(found.ok());
      CHECK(found.error().code == ErrorCode::not_found);
    }
  }

  TEST_CASE("files of a version have its modes, sizes, times and content") {
    TwoViews f;
    const Inode bin = f.at(f.version_root(f.first), "bin").inode;
    const Attributes run = f.at(bin, "run");
    CHECK(run.kind == NodeKind::file);
    CHECK(run.mode == 0555U);
    CHECK(run.bytes == 2);
    CHECK(run.mtime == 1'500'000'000);
    const auto content = f.views.content(run.inode);
    REQUIRE(content.ok());
    CHECK(content->version == f.first);
    CHECK(content->sha256 == base::content_hash(base::as_bytes("#!")));
    CHECK(*f.views.version_of(run.inode) == f.first);
    CHECK(f.views.lookup(run.inode, "x").error().code == ErrorCode::not_found);
    CHECK(f.views.lookup(bin, "nothing").error().code == ErrorCode::not_found);
  }

  TEST_CASE("only files have a content, and only what is inside a version has a version") {
    TwoViews f;
    const Inode root = f.version_root(f.first);
    CHECK(f.views.content(root).error().code == ErrorCode::invalid_argument);
    CHECK(f.views.content(f.at(root, "link").inode).error().code == ErrorCode::invalid_argument);
    CHECK(f.views.content(f.at(refs_folder_inode, "main").inode).error().code == ErrorCode::invalid_argument);
    CHECK(f.views.version_of(versions_folder_inode).error().code == ErrorCode::not_found);
    CHECK(f.views.version_of(status_inode).error().code == ErrorCode::not_found);
  }

  TEST_CASE("links of a version lead where the version says") {
    TwoViews f;
    const Attributes link = f.at(f.version_root(f.first), "link");
    CHECK(link.kind == NodeKind::symlink);
    CHECK(link.bytes == 7);
    CHECK(*f.views.read_link(link.inode) == "bin/run");
    CHECK(f.views.read_link(f.version_root(f.first)).error().code == ErrorCode::invalid_argument);
  }

  TEST_CASE("slashes in refs make folders, each listed once") {
    TwoViews f;
    CHECK(f.names(refs_folder_inode) == "main@ runs/ tags/ ");
    const Inode runs = f.at(refs_folder_inode, "runs").inode;
    CHECK(f.names(runs) == "a/ c@ ");
    CHECK(f.names(f.at(runs, "a").inode) == "b@ ");
    CHECK(f.views.lookup(refs_folder_inode, "run").error().code == ErrorCode::not_found);
    CHECK(f.views.lookup(runs, "main").error().code == ErrorCode::not_found);
  }

  TEST_CASE("a ref is a link to its version, as many folders up as its name is deep") {
    TwoViews f;
    const Attributes main = f.at(refs_folder_inode, "main");
    CHECK(main.kind == NodeKind::symlink);
    CHECK(*f.views.read_link(main.inode) == "../versions/" + f.second->id.hex());
    const Inode runs = f.at(refs_folder_inode, "runs").inode;
    CHECK(*f.views.read_link(f.at(runs, "c").inode) == "../../versions/" + f.second->id.hex());
    const Inode deep = f.at(f.at(runs, "a").inode, "b").inode;
    CHECK(*f.views.read_link(deep) == "../../../versions/" + f.first->id.hex());
  }

  TEST_CASE("a ref that moved is another inode, and the old one leads where it did") {
    TwoViews f;
    const Inode before = f.at(refs_folder_inode, "main").inode;
    f.refs[0].second = f.first->id;
    const Inode after = f.at(refs_folder_inode, "main").inode;
    CHECK(after != before);
    CHECK(*f.views.read_link(before) == "../versions/" + f.second->id.hex());
    CHECK(*f.views.read_link(after) == "../versions/" + f.first->id.hex());
  }

  TEST_CASE("the same thing has the same inode while it is known") {
    TwoViews f;
    const Inode root = f.version_root(f.first);
    CHECK(f.version_root(f.first) == root);
    CHECK(f.version_root(f.second) != root);
    CHECK(f.at(root, "link").inode == f.at(root, "link").inode);
    CHECK(f.version_loads == 2);
  }

  TEST_CASE("an inode is stale once all of its lookups are forgotten, and its number is not used again") {
    TwoViews f;
    const Inode root = f.version_root(f.first);
    REQUIRE(f.version_root(f.first) == root);
    f.views.forget(root, 1);
    CHECK(f.views.get(root).ok());
    f.views.forget(root, 1);
    const auto gone = f.views.get(root);
    REQUIRE_FALSE(gone.ok());
    CHECK(gone.error().code == ErrorCode::stale);
    CHECK(f.version_root(f.first) != root);
    f.views.forget(root, 100);  // a late forget hurts nobody
    f.views.forget(status_inode, 100);
    CHECK(f.views.get(status_inode).ok());
  }

  TEST_CASE("a version without inodes is let go and loaded again when somebody looks") {
    TwoViews f;
    f.views.forget(f.version_root(f.second), 1);
    f.version_root(f.second);
    CHECK(f.version_loads == 2);
  }

  TEST_CASE("folders that need the remote say so") {
    TwoViews f;
    CHECK(f.views.may_block(versions_folder_inode));
    CHECK(f.views.may_block(refs_folder_inode));
    CHECK(f.views.may_block(f.at(refs_folder_inode, "runs").inode));
    CHECK_FALSE(f.views.may_block(control_folder_inode));
    CHECK_FALSE(f.views.may_block(f.version_root(f.first)));
  }

  TEST_CASE("a remote that does not answer is an error, not an empty folder") {
    TwoViews f;
    const Inode root = f.version_root(f.first);
    f.remote_is_down = true;
    CHECK(f.views.list(versions_folder_inode).error().code == ErrorCode::unavailable);
    CHECK(f.views.list(refs_folder_inode).error().code == ErrorCode::unavailable);
    CHECK(f.views.lookup(refs_folder_inode, "main").error().code == ErrorCode::unavailable);
    CHECK(f.names(root) == "bin/ link@ ");
  }
}

}  // namespace
}  // namespace hfd::vfs
