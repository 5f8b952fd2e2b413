// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lineage/bucket.hpp"
#include "lineage/manifest_samples.hpp"
#include "remote/folder_fixture.hpp"

namespace hfd::lineage {
namespace {

TEST_SUITE("lineage/base_version") {
  TEST_CASE("a base is its files, each upstream, and always the same version") {
    const test::TempFolder folder;
    const auto base = test::open_folder_remote(folder.path());
    base::ThreadPool pool("test", 2);
    REQUIRE(base::make_folders(folder / "sub").ok());
    REQUIRE(base::replace_file(folder / "config.json", base::as_bytes("{}")).ok());
    REQUIRE(base::replace_file(folder / "sub/run.sh", base::as_bytes("#!"), 0755).ok());
    REQUIRE(base::replace_file(folder / "sub/same.json", base::as_bytes("{}")).ok());
    REQUIRE(base::replace_file(folder / "empty", {}).ok());
    for (const char* hidden : {".git", ".cache/huggingface/download", ".hfdelta", "keep/.git"}) {
      REQUIRE(base::make_folders(folder / hidden).ok());
      REQUIRE(base::replace_file(folder / (std::string(hidden) + "/x"), base::as_bytes("x")).ok());
    }
    const auto manifest = manifest_of_base(*base, pool);
    REQUIRE(manifest.ok());
    std::vector<std::string> paths;
    for (const FileEntry& file : manifest->files) {
      paths.push_back(file.path);
    }
    CHECK(paths == std::vector<std::string>{"config.json", "empty", "keep/.git/x", "sub/run.sh",
                                            "sub/same.json"});
    CHECK(manifest->sequence == 0);
    CHECK_FALSE(manifest->parent);
    CHECK(manifest->base->uri == base->uri());
    CHECK(manifest->files[3].executable);
    CHECK_FALSE(manifest->files[0].executable);
    CHECK(manifest->files[0].sha256 == test::content_of("{}"));
    CHECK(manifest->contents.size() == 4);
    CHECK(manifest->stats.full_bytes == 7);
    const auto first = make_version(*manifest);
    REQUIRE(first.ok());
    const auto again = make_version(*manifest_of_base(*base, pool));
    CHECK((*first)->id == (*again)->id);
  }

  TEST_CASE("files of a Hugging Face cache are symlinks and are followed") {
    const test::TempFolder folder;
    REQUIRE(base::make_folders(folder / "snapshots/abc").ok());
    REQUIRE(base::make_folders(folder / "blobs").ok());
    REQUIRE(base::replace_file(folder / "blobs/1", base::as_bytes("weights")).ok());
    REQUIRE(::symlink("../../blobs/1", (folder / "snapshots/abc/model.safetensors").c_str()) == 0);
    const auto base = test::open_folder_remote(folder / "snapshots/abc");
    base::ThreadPool pool("test", 1);
    const auto manifest = manifest_of_base(*base, pool);
    REQUIRE(manifest.ok());
    REQUIRE(manifest->files.size() == 1);
    CHECK(manifest->files[0].kind == FileEntry::Kind::file);
    CHECK(manifest->files[0].sha256 == test::content_of("weights"));
  }
}

}  // namespace
}  // namespace hfd::lineage
