// SPDX-License-Identifier: Apache-2.0
// Safetensors files made in memory and a bucket to publish them to. Used by unit tests only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "api/session.hpp"
#include "base/hash.hpp"
#include "publish/publisher.hpp"
#include "remote/folder_fixture.hpp"
#include "temp_folder.hpp"

namespace hfd::test {

/// Bytes that do not compress: a 64-bit linear congruential generator.
inline std::string noise(std::size_t bytes, std::uint64_t seed) {
  std::string out(bytes, '\0');
  std::uint64_t state = seed * 2'862'933'555'777'941'757U + 3'037'000'493U;
  for (char& c : out) {
    state = state * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    c = static_cast<char>(state >> 56U);
  }
  return out;
}

struct TestTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};

inline std::string safetensors(const std::vector<TestTensor>& tensors) {
  std::string json = "{";
  std::string data;
  for (const TestTensor& tensor : tensors) {
    json += (json.size() > 1 ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"" + tensor.dtype +
            "\",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      json += (i > 0 ? "," : "") + std::to_string(tensor.shape[i]);
    }
    json += "],\"data_offsets\":[" + std::to_string(data.size()) + ",";
    data += tensor.bytes;
    json += std::to_string(data.size()) + "]}";
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    length[i] = static_cast<char>(json.size() >> (8 * i));
  }
  return length + json + data;
}

/// A bf16 matrix of `rows` x 256.
inline TestTensor matrix(const std::string& name, std::uint64_t rows, std::uint64_t seed) {
  return {name, "BF16", {rows, 256}, noise(static_cast<std::size_t>(rows * 512), seed)};
}

using Tree = std::map<std::string, std::string>;

/// A bucket, and publishing of trees that are held in memory.
struct PublisherFixture {
  TempFolder folder;
  std::string bucket_path = folder / "bucket";
  std::unique_ptr<api::Session> session;
  std::vector<std::unique_ptr<std::string>> texts;

  PublisherFixture() {
    auto opened = api::Session::open({.source = bucket_path, .as_bucket = true, .create = true});
    REQUIRE(opened.ok());
    session = std::move(*opened);
  }

  publish::PublishFile file(const std::string& path, const std::string& content) {
    class Text final : public base::ReadableBytes {
     public:
      explicit Text(const std::string& text) : bytes_(base::as_bytes(text)) {}
      std::uint64_t size() const override { return bytes_.size(); }
      Result<void> read_at(std::uint64_t offset, base::ByteSpan out) override {
        return bytes_.read_at(offset, out);
      }

     private:
      base::MemoryBytes bytes_;
    };
    texts.push_back(std::make_unique<std::string>(content));
    publish::PublishFile out;
    out.entry.path = path;
    out.open = [text = texts.back().get()]() -> Result<std::unique_ptr<base::ReadableBytes>> {
      return std::unique_ptr<base::ReadableBytes>(std::make_unique<Text>(*text));
    };
    return out;
  }

  publish::PublishRequest request(const Tree& tree) {
    publish::PublishRequest request;
    request.ref = "main";
    request.temporary_folder = folder / "tmp";
    for (const auto& [path, content] : tree) {
      request.files.push_back(file(path, content));
    }
    const auto head = session->bucket().head("main");
    REQUIRE(head.ok());
    if (*head) {
      request.parent = *session->bucket().version((*head)->version);
    }
    return request;
  }

  Result<publish::PublishOutcome> try_publish(const publish::PublishRequest& request) {
    return publish::publish_version(session->bucket(), request, session->opener(), session->pool());
  }
  publish::PublishOutcome publish(const publish::PublishRequest& request) {
    auto outcome = try_publish(request);
    INFO((outcome.ok() ? std::string() : outcome.error().message + " / " + outcome.error().object));
    REQUIRE(outcome.ok());
    return std::move(*outcome);
  }
  publish::PublishOutcome publish(const Tree& tree) { return publish(request(tree)); }

  /// Rebuilds every file of a version and compares.
  void check_version(const lineage::VersionPtr& version, const Tree& tree) {
    std::size_t files = 0;
    for (const lineage::FileEntry& entry : version->manifest.files) {
      if (entry.kind != lineage::FileEntry::Kind::file) {
        continue;
      }
      ++files;
      INFO("file " << entry.path);
      REQUIRE(tree.count(entry.path) == 1);
      const std::string& wanted = tree.at(entry.path);
      REQUIRE(entry.bytes == wanted.size());
      CHECK(entry.sha256 == base::content_hash(base::as_bytes(wanted)));
      const auto bytes =
          session->rebuilder().read_blocking({version, entry.sha256}, ByteRange{0, entry.bytes});
      REQUIRE(bytes.ok());
      CHECK(base::as_text(*bytes) == wanted);
    }
    CHECK(files == tree.size());
  }

  const lineage::Edge& edge_of(const publish::PublishOutcome& outcome, const std::string& content) {
    const auto& contents = outcome.version->manifest.contents;
    const auto found = contents.find(base::content_hash(base::as_bytes(content)));
    REQUIRE(found != contents.end());
    return found->second.edges.front();
  }
};

}  // namespace hfd::test
