// SPDX-License-Identifier: Apache-2.0
#include "publish/publisher.hpp"

#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "publish/publisher_fixture.hpp"

namespace hfd::publish {
namespace {

using test::matrix;
using test::noise;
using test::PublisherFixture;
using test::safetensors;
using test::Tree;

/// The same matrix with every `step`-th 16-bit word one higher.
test::TestTensor nudged(test::TestTensor tensor, std::size_t step) {
  for (std::size_t i = 0; i < tensor.bytes.size(); i += 2 * step) {
    tensor.bytes[i] = static_cast<char>(tensor.bytes[i] + 1);
  }
  return tensor;
}

TEST_SUITE("publish/publisher") {
  TEST_CASE("the first version of an empty bucket holds all files and is number 1") {
    PublisherFixture f;
    const Tree tree{{"config.json", "{\"a\": 1}"},
                    {"empty", ""},
                    {"sub/notes.txt", std::string(10'000, 'x')},
                    {"noise.bin", noise(1000, 3)},
                    {"model.safetensors", safetensors({matrix("w", 400, 1)})}};
    const PublishOutcome outcome = f.publish(tree);
    const lineage::Manifest& manifest = outcome.version->manifest;
    CHECK(manifest.sequence == 1);
    CHECK_FALSE(manifest.parent);
    CHECK(outcome.file_count == 5);
    std::uint64_t full = 0;
    for (const auto& [path, content] : tree) {
      full += content.size();
    }
    CHECK(outcome.full_bytes == full);
    CHECK(outcome.meta_bytes > outcome.version->manifest_bytes);
    CHECK(f.session->bucket().head("main")->value().version == outcome.version->id);
    f.check_version(outcome.version, tree);
    using Encoding = lineage::BlobEdge::Encoding;
    const auto encoding = [&](const std::string& path) {
      return std::get<lineage::BlobEdge>(f.edge_of(outcome, tree.at(path))).encoding;
    };
    CHECK(encoding("sub/notes.txt") == Encoding::zstd);
    CHECK(encoding("noise.bin") == Encoding::identity);
    CHECK(encoding("empty") == Encoding::identity);
    CHECK(encoding("model.safetensors") == Encoding::hfd);
    std::uint64_t stored = 0;
    for (const char* prefix : {"hfdelta/blobs", "hfdelta/deltas"}) {
      const auto listed = *f.session->remote().list(prefix);
      for (const auto& object : listed) {
        stored += object.bytes;
      }
    }
    CHECK(outcome.stored_bytes == stored);
    CHECK(base::list_folder(f.folder / "tmp")->empty());
  }

  TEST_CASE("a changed file becomes a delta against its parent, an unchanged one nothing") {
    PublisherFixture f;
    const auto first = matrix("w", 2000, 1);
    Tree tree{{"model.safetensors", safetensors({first})},
              {"other.safetensors", safetensors({matrix("v", 300, 2)})}};
    f.publish(tree);
    tree["model.safetensors"] = safetensors({nudged(first, 1000)});
    const PublishOutcome second = f.publish(tree);
    CHECK(second.version->manifest.sequence == 2);
    CHECK(second.stored_bytes < 8'000);
    CHECK(second.version->manifest.stats.changed_elements == 512);
    CHECK(second.version->manifest.stats.total_elements == 512'000);
    const auto& delta = std::get<lineage::DeltaEdge>(f.edge_of(second, tree["model.safetensors"]));
    CHECK(delta.sources ==
          std::vector<ContentHash>{base::content_hash(base::as_bytes(safetensors({first})))});
    CHECK(second.version->manifest.contents.size() == 3);  // with the source of the delta
    f.check_version(second.version, tree);
  }

  TEST_CASE("a step without any change is a version and stores nothing") {
    PublisherFixture f;
    const Tree tree{{"model.safetensors", safetensors({matrix("w", 400, 1)})},
                    {"config.json", "{}"}};
    const PublishOutcome first = f.publish(tree);
    const PublishOutcome second = f.publish(tree);
    CHECK(second.stored_bytes == 0);
    CHECK(second.version->manifest.sequence == 2);
    CHECK(second.version->manifest.parent == first.version->id);
    CHECK(second.version->id != first.version->id);
    f.check_version(second.version, tree);
  }

  TEST_CASE("two new files of one content are stored once, small or large") {
    PublisherFixture f;
    const std::string large = safetensors({matrix("w", 400, 1)});
    const PublishOutcome outcome = f.publish(
        Tree{{"a.safetensors", large}, {"b.safetensors", large}, {"c", "small"}, {"d", "small"}});
    CHECK(outcome.version->manifest.contents.size() == 2);
    CHECK(f.session->remote().list("hfdelta/blobs")->size() == 2);
    CHECK(outcome.stored_bytes < large.size() + large.size() / 50 + 100);
  }

  TEST_CASE("tensors move between files of the parent for almost nothing") {
    PublisherFixture f;
    const auto a = matrix("a", 400, 1);
    const auto b = matrix("b", 400, 2);
    const auto c = matrix("c", 400, 3);
    f.publish(Tree{{"model-1.safetensors", safetensors({a, b})},
                   {"model-2.safetensors", safetensors({c})}});
    const Tree tree{{"x.safetensors", safetensors({c, a})}, {"y.safetensors", safetensors({b})}};
    const PublishOutcome outcome = f.publish(tree);
    CHECK(outcome.stored_bytes < 8'000);
    f.check_version(outcome.version, tree);
  }

  TEST_CASE("known files keep their content, with everything it is made of") {
    PublisherFixture f;
    const auto w = matrix("w", 400, 1);
    f.publish(Tree{{"m.safetensors", safetensors({w})}});
    const std::string changed = safetensors({nudged(w, 50)});
    const PublishOutcome second = f.publish(Tree{{"m.safetensors", changed}});
    PublishRequest request = f.request(Tree{{"new.txt", "text"}});
    PublishFile moved;
    moved.entry.path = "moved/m.safetensors";
    moved.entry.sha256 = base::content_hash(base::as_bytes(changed));
    moved.known = true;
    request.files.push_back(moved);
    const PublishOutcome third = f.publish(request);
    CHECK(third.version->manifest.contents.size() == 3);
    f.check_version(third.version, Tree{{"moved/m.safetensors", changed}, {"new.txt", "text"}});
    request = f.request({});
    moved.entry.sha256 = base::content_hash(base::as_bytes("unknown"));
    request.files = {moved};
    CHECK(f.try_publish(request).error().code == ErrorCode::invalid_argument);
  }

  TEST_CASE("symlinks and empty folders are kept; a symlink out of the tree is left out and told") {
    PublisherFixture f;
    PublishRequest request = f.request(Tree{{"a", "x"}});
    const auto add = [&](const std::string& path, lineage::FileEntry::Kind kind,
                         const std::string& target) {
      PublishFile file;
      file.entry.path = path;
      file.entry.kind = kind;
      file.entry.symlink_target = target;
      request.files.push_back(file);
    };
    add("link", lineage::FileEntry::Kind::symlink, "a");
    add("out", lineage::FileEntry::Kind::symlink, "/etc/passwd");
    add("folder", lineage::FileEntry::Kind::folder, "");
    const PublishOutcome outcome = f.publish(request);
    CHECK(outcome.skipped == std::vector<std::string>{"out"});
    CHECK(outcome.version->manifest.files.size() == 3);
    CHECK(outcome.file_count == 1);
  }

  TEST_CASE("names that no version can hold are usage errors") {
    PublisherFixture f;
    CHECK(f.try_publish(f.request(Tree{{"../x", "x"}})).error().code ==
          ErrorCode::invalid_argument);
    CHECK(f.try_publish(f.request(Tree{{".hfdelta/x", "x"}})).error().code ==
          ErrorCode::invalid_argument);
    PublishRequest twice = f.request(Tree{{"a", "x"}});
    twice.files.push_back(f.file("a", "y"));
    CHECK(f.try_publish(twice).error().code == ErrorCode::invalid_argument);
    PublishRequest ref = f.request(Tree{{"a", "x"}});
    ref.ref = "123";
    CHECK(f.try_publish(ref).error().code == ErrorCode::invalid_argument);
    CHECK_FALSE(f.session->bucket().head("main")->has_value());
  }

  TEST_CASE("a file that cannot be read ends the publish and names it") {
    PublisherFixture f;
    PublishRequest request = f.request({});
    PublishFile file;
    file.entry.path = "broken";
    file.open = []() -> Result<std::unique_ptr<base::ReadableBytes>> {
      return Error{ErrorCode::io, "no"};
    };
    request.files.push_back(file);
    const auto outcome = f.try_publish(request);
    REQUIRE_FALSE(outcome.ok());
    CHECK(outcome.error().object == "broken");
    CHECK_FALSE(f.session->bucket().head("main")->has_value());
  }

  TEST_CASE("a cancelled publish ends with stale and claims nothing") {
    PublisherFixture f;
    PublishRequest request =
        f.request(Tree{{"m.safetensors", safetensors({matrix("w", 4000, 1)})}});
    std::atomic<int> asked{0};
    request.cancelled = [&] { return ++asked > 3; };
    CHECK(f.try_publish(request).error().code == ErrorCode::stale);
    CHECK_FALSE(f.session->bucket().head("main")->has_value());
    CHECK(base::list_folder(f.folder / "tmp")->empty());
  }

  TEST_CASE("a publish on an old parent is a conflict, and its retry sends no byte twice") {
    PublisherFixture f;
    const auto w = matrix("w", 400, 1);
    f.publish(Tree{{"m.safetensors", safetensors({w})}});
    const Tree mine{{"m.safetensors", safetensors({nudged(w, 20)})}};
    PublishRequest request = f.request(mine);
    // Another writer is faster: it claims number 2 while the request encodes.
    bool raced = false;
    request.cancelled = [&] {
      if (!raced) {
        raced = true;
        f.publish(Tree{{"n.txt", "other"}, {"m.safetensors", safetensors({w})}});
      }
      return false;
    };
    const auto lost = f.try_publish(request);
    REQUIRE_FALSE(lost.ok());
    CHECK(lost.error().code == ErrorCode::conflict);
    CHECK(f.try_publish(request).error().code ==
          ErrorCode::conflict);  // found before anything is encoded
    const PublishOutcome again = f.publish(mine);
    CHECK(again.version->manifest.sequence == 3);
    CHECK(again.stored_bytes == 0);
    f.check_version(again.version, mine);
  }

  TEST_CASE("on a base the first publish claims version 0 too and stores the difference only") {
    PublisherFixture f;
    const auto w = matrix("w", 2000, 1);
    const std::string base_model = safetensors({w});
    REQUIRE(base::make_folders(f.folder / "base").ok());
    REQUIRE(
        base::replace_file(f.folder / "base/model.safetensors", base::as_bytes(base_model)).ok());
    REQUIRE(base::replace_file(f.folder / "base/config.json", base::as_bytes("{}")).ok());
    const auto base = api::open_base(f.folder / "base");
    REQUIRE(base.ok());
    const auto manifest = lineage::manifest_of_base(**base, f.session->pool());
    REQUIRE(manifest.ok());
    const auto version0 = lineage::make_version(*manifest);
    REQUIRE(version0.ok());
    const Tree tree{{"model.safetensors", safetensors({nudged(w, 500)})}, {"config.json", "{}"}};
    PublishRequest request = f.request(tree);
    request.parent = *version0;
    request.base = *version0;
    const PublishOutcome first = f.publish(request);
    CHECK(first.version->manifest.sequence == 1);
    CHECK(first.version->manifest.parent == (*version0)->id);
    CHECK(first.version->manifest.base->uri == (*base)->uri());
    CHECK(first.stored_bytes < 16'000);
    CHECK((*f.session->bucket().base_version("main"))->id == (*version0)->id);
    CHECK(*f.session->bucket().resolve("v0", "main") == (*version0)->id);
    f.check_version(first.version, tree);
    // Back to the base: nothing is stored, the base's file is it.
    const PublishOutcome back = f.publish(Tree{{"model.safetensors", base_model}});
    CHECK(back.stored_bytes == 0);
    f.check_version(back.version, Tree{{"model.safetensors", base_model}});
  }

  TEST_CASE("a chain of steps stays exact") {
    PublisherFixture f;
    auto w = matrix("w", 600, 1);
    for (int step = 0; step < 6; ++step) {
      w = nudged(w, static_cast<std::size_t>(30 + step));
      const Tree tree{{"m.safetensors", safetensors({w, matrix("fixed", 100, 9)})},
                      {"step.json", std::to_string(step)}};
      const PublishOutcome outcome = f.publish(tree);
      f.check_version(outcome.version, tree);
    }
  }

  TEST_CASE("progress names files and ends at their size") {
    PublisherFixture f;
    const std::string content = safetensors({matrix("w", 40'000, 1)});
    PublishRequest request = f.request(Tree{{"m.safetensors", content}});
    base::Mutex mutex;
    std::uint64_t encoded = 0;
    std::uint64_t uploaded = 0;
    request.progress = [&](const std::string& path, const char* doing, std::uint64_t done,
                           std::uint64_t /*total*/) {
      const base::Lock lock(mutex);
      CHECK(path == "m.safetensors");
      (std::string(doing) == "encoding" ? encoded : uploaded) = done;
    };
    f.publish(request);
    CHECK(encoded == content.size());
    CHECK(uploaded > 0);
  }
}

}  // namespace
}  // namespace hfd::publish
