// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api_fixture.hpp"

namespace hfd::api {
namespace {

using test::ApiFixture;
using test::matrix;
using test::safetensors;
using test::Tree;

const Tree& sample() {
  static const Tree tree{{"config.json", "{\"a\": 1}"},
                         {"empty", ""},
                         {"sub/deep/notes.txt", "text"},
                         {"bad\xFF.txt", "latin"},
                         {"model.safetensors", safetensors({matrix("w", 3000, 1)})}};
  return tree;
}

TEST_SUITE("api/publish_pull") {
  TEST_CASE("a folder comes back byte for byte, with times, modes, symlinks and empty folders") {
    ApiFixture f;
    test::write_tree(f.source, sample());
    REQUIRE(::chmod((f.source + "/sub/deep/notes.txt").c_str(), 0755) == 0);
    REQUIRE(::symlink("config.json", (f.source + "/link").c_str()) == 0);
    REQUIRE(base::make_folders(f.source + "/none/inner").ok());
    const timespec times[2] = {{1'600'000'000, 5}, {1'600'000'000, 123'456'789}};
    REQUIRE(::utimensat(AT_FDCWD, (f.source + "/config.json").c_str(), times, 0) == 0);
    const PublishedFolder published = f.publish_source();
    CHECK(published.outcome.file_count == sample().size());
    const Pulled pulled = f.pull();
    CHECK(pulled.version == published.outcome.version->id);
    CHECK(pulled.files.size() == sample().size());
    f.check_target(sample());
    struct stat status {};
    REQUIRE(::stat((f.target + "/config.json").c_str(), &status) == 0);
    CHECK(status.st_mtim.tv_sec == 1'600'000'000);
    CHECK(status.st_mtim.tv_nsec == 123'456'789);
    CHECK((status.st_mode & S_IXUSR) == 0);
    REQUIRE(::stat((f.target + "/sub/deep/notes.txt").c_str(), &status) == 0);
    CHECK((status.st_mode & S_IXUSR) != 0);
    CHECK(std::filesystem::read_symlink(f.target + "/link") == "config.json");
    CHECK(std::filesystem::is_directory(f.target + "/none/inner"));
  }

  TEST_CASE("a second pull writes nothing; a changed file is written again; others stay") {
    ApiFixture f;
    f.publish(sample());
    f.pull();
    for (const PulledFile& file : f.pull().files) {
      CHECK_FALSE(file.written);
    }
    test::put_text(*test::open_folder_remote(f.target), "config.json", "{\"b\": 1}");
    test::put_text(*test::open_folder_remote(f.target), "mine.txt", "mine");
    for (const PulledFile& file : f.pull().files) {
      CHECK(file.written == (file.path == "config.json"));
    }
    f.check_target(sample());
    CHECK(test::file_text(f.target + "/mine.txt") == "mine");
  }

  TEST_CASE("older versions are pulled by name") {
    ApiFixture f;
    f.publish(Tree{{"a", "one"}});
    f.publish(Tree{{"a", "two"}});
    f.pull("head~1");
    f.check_target(Tree{{"a", "one"}});
    f.pull();
    f.check_target(Tree{{"a", "two"}});
    const auto unknown = pull({.source = f.bucket, .folder = f.target, .version = "v9"});
    CHECK(unknown.error().code == ErrorCode::not_found);
  }

  TEST_CASE("a pull never writes through a symlink below its folder") {
    ApiFixture f;
    f.publish(Tree{{"sub/a", "inside"}, {"b", "inside"}});
    REQUIRE(base::make_folders(f.folder / "outside").ok());
    REQUIRE(base::make_folders(f.target).ok());
    REQUIRE(::symlink((f.folder / "outside").c_str(), (f.target + "/sub").c_str()) == 0);
    REQUIRE(base::replace_file(f.folder / "outside/victim", base::as_bytes("safe")).ok());
    REQUIRE(::symlink((f.folder / "outside/victim").c_str(), (f.target + "/b").c_str()) == 0);
    CHECK_FALSE(pull({.source = f.bucket, .folder = f.target, .version = ""}).ok());
    CHECK_FALSE(std::filesystem::exists(f.folder / "outside/a"));
    REQUIRE(base::remove_file(f.target + "/sub").ok());
    f.pull();
    f.check_target(Tree{{"sub/a", "inside"}, {"b", "inside"}});
    CHECK(test::file_text(f.folder / "outside/victim") == "safe");
  }

  TEST_CASE("a damaged object fails the pull and leaves no half file") {
    ApiFixture f;
    f.publish(Tree{{"a.bin", test::noise(1000, 1)}});
    const auto remote = test::open_folder_remote(f.bucket);
    const auto blobs = remote->list("hfdelta/blobs");
    REQUIRE(blobs->size() == 1);
    std::string text = test::text_of(*remote, blobs->front().name);
    text[500] = static_cast<char>(text[500] ^ 1);
    test::put_text(*remote, blobs->front().name, text);
    const auto pulled = pull({.source = f.bucket, .folder = f.target, .version = ""});
    REQUIRE_FALSE(pulled.ok());
    CHECK(pulled.error().code == ErrorCode::corrupt);
    CHECK(base::list_folder(f.target)->empty());
  }

  TEST_CASE("on a base only the difference is stored, and the base may move") {
    ApiFixture f;
    auto w = matrix("w", 3000, 1);
    const Tree base_tree{{"model.safetensors", safetensors({w})}, {"config.json", "{}"}};
    test::write_tree(f.folder / "base", base_tree);
    w.bytes[0] = static_cast<char>(w.bytes[0] ^ 1);
    const Tree tree{{"model.safetensors", safetensors({w})}, {"config.json", "{}"}};
    const PublishedFolder published = f.publish(tree, f.folder / "base");
    CHECK(published.outcome.stored_bytes < 8'000);
    CHECK(published.outcome.version->manifest.sequence == 1);
    f.pull();
    f.check_target(tree);
    std::filesystem::rename(f.folder / "base", f.folder / "moved");
    std::filesystem::remove_all(f.target);
    const auto lost = pull({.source = f.bucket, .folder = f.target, .version = ""});
    REQUIRE_FALSE(lost.ok());
    CHECK(lost.error().hint.find("--base") != std::string::npos);
    const auto found =
        pull({.source = f.bucket, .folder = f.target, .version = "", .base = f.folder / "moved"});
    REQUIRE(found.ok());
    f.check_target(tree);
    // Another model is not the base: said, not served.
    test::write_tree(
        f.folder / "wrong",
        Tree{{"model.safetensors", safetensors({matrix("w", 3000, 7)})}, {"config.json", "{}"}});
    std::filesystem::remove_all(f.target);
    const auto wrong =
        pull({.source = f.bucket, .folder = f.target, .version = "", .base = f.folder / "wrong"});
    REQUIRE_FALSE(wrong.ok());
    CHECK(wrong.error().code == ErrorCode::corrupt);
    CHECK_FALSE(std::filesystem::exists(f.target + "/model.safetensors"));
  }

  TEST_CASE("later publishes go on from the base without naming it") {
    ApiFixture f;
    auto w = matrix("w", 3000, 1);
    test::write_tree(f.folder / "base", Tree{{"model.safetensors", safetensors({w})}});
    f.publish(Tree{{"other.txt", "x"}}, f.folder / "base");
    const PublishedFolder second = f.publish(Tree{{"renamed.safetensors", safetensors({w})}});
    CHECK(second.outcome.stored_bytes ==
          0);  // a content of the base, though the parent has no such file
    f.pull();
    f.check_target(Tree{{"renamed.safetensors", safetensors({w})}});
  }

  TEST_CASE("a base is pulled as it is") {
    ApiFixture f;
    test::write_tree(f.source, sample());
    const auto pulled = pull({.source = f.source, .folder = f.target, .version = ""});
    REQUIRE(pulled.ok());
    f.check_target(sample());
    CHECK(pull({.source = f.source, .folder = f.target, .version = "v1"}).error().code ==
          ErrorCode::not_found);
  }

  TEST_CASE("junk is left out, incomplete and stale files are published and told") {
    ApiFixture f;
    const std::string shard = safetensors({matrix("a", 2, 1)});
    const PublishedFolder published = f.publish(
        Tree{{"x.tmp", "junk"},
             {".DS_Store", "junk"},
             {"m.safetensors", shard.substr(0, 40)},
             {"model.safetensors.index.json", R"({"weight_map":{"a":"a-1-of-1.safetensors"}})"},
             {"a-1-of-1.safetensors", shard},
             {"a-2-of-2.safetensors", shard}});
    CHECK(published.junk == std::vector<std::string>{".DS_Store", "x.tmp"});
    REQUIRE(published.incomplete.size() == 1);
    CHECK(published.incomplete[0].path == "m.safetensors");
    REQUIRE(published.stale.size() == 1);
    CHECK(published.stale[0].path == "a-2-of-2.safetensors");
    CHECK(published.outcome.file_count == 4);
  }

  TEST_CASE("symlinks out of the folder are published as the files they lead to, or left out") {
    ApiFixture f;
    test::write_tree(f.source, Tree{{"a", "x"}});
    REQUIRE(base::replace_file(f.folder / "blob", base::as_bytes("weights")).ok());
    REQUIRE(::symlink("../blob", (f.source + "/model.bin").c_str()) == 0);
    REQUIRE(::symlink("../gone", (f.source + "/dead").c_str()) == 0);
    REQUIRE(::mkfifo((f.source + "/fifo").c_str(), 0600) == 0);
    const PublishedFolder published = f.publish_source();
    CHECK(published.skipped == std::vector<std::string>{"dead", "fifo"});
    f.pull();
    f.check_target(Tree{{"a", "x"}, {"model.bin", "weights"}});
    CHECK_FALSE(std::filesystem::is_symlink(f.target + "/model.bin"));
  }

  TEST_CASE("wrong uses say so") {
    ApiFixture f;
    CHECK(publish_folder({.folder = f.folder / "none", .uri = f.bucket}).error().code ==
          ErrorCode::not_found);
    test::write_tree(f.source, Tree{{"a", "x"}});
    CHECK(publish_folder({.folder = f.source, .uri = f.source}).error().code ==
          ErrorCode::invalid_argument);
    CHECK(publish_folder({.folder = f.source, .uri = f.source + "/b"}).error().code ==
          ErrorCode::invalid_argument);
    CHECK(publish_folder({.folder = f.source + "/a", .uri = f.bucket}).error().code ==
          ErrorCode::invalid_argument);
    CHECK(publish_folder({.folder = f.source, .uri = "a/b"}).error().code ==
          ErrorCode::unsupported);
    CHECK(publish_folder({.folder = f.source, .uri = f.bucket, .ref = "head"}).error().code ==
          ErrorCode::invalid_argument);
    CHECK(pull({.source = f.folder / "none", .folder = f.target, .version = ""}).error().code ==
          ErrorCode::not_found);
    f.publish(Tree{{"a", "x"}});
    CHECK(publish_folder({.folder = f.source, .uri = f.folder / "other", .base = f.bucket})
              .error()
              .code == ErrorCode::unsupported);
  }

  TEST_CASE("two publishers at once both land, one after the other") {
    ApiFixture f;
    f.publish(Tree{{"start", "x"}});
    test::write_tree(f.folder / "one", Tree{{"a.safetensors", safetensors({matrix("a", 500, 1)})}});
    test::write_tree(f.folder / "two", Tree{{"b.safetensors", safetensors({matrix("b", 500, 2)})}});
    bool ok[2] = {false, false};
    std::thread one(
        [&] { ok[0] = publish_folder({.folder = f.folder / "one", .uri = f.bucket}).ok(); });
    std::thread two(
        [&] { ok[1] = publish_folder({.folder = f.folder / "two", .uri = f.bucket}).ok(); });
    one.join();
    two.join();
    CHECK(ok[0]);
    CHECK(ok[1]);
    CHECK(f.open()->bucket().history("main", 10)->size() == 3);
  }
}

}  // namespace
}  // namespace hfd::api
