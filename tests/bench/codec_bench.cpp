// SPDX-License-Identifier: Apache-2.0
// The program behind `tools/bench codec`: for each pair of files, bytes and speed of hfdelta and of
// the field's formats, one table and JSON rows. Speed is target bytes (GB = 1e9) by CPU time on one
// thread, median of at least 5 runs (fewer where one run takes seconds; `runs` says). hfdelta's
// encode is all in: source mapping, class tables, sha256 of target and object; its decode checks
// every block's hash.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <time.h>
#include <unistd.h>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"
#include "codec/apply.hpp"
#include "codec/delta_writer.hpp"
#include "codec/source_map.hpp"
#include "rival.hpp"

namespace hfd::bench {
namespace {

constexpr int runs_wanted = 5;
/// No more runs are begun for a step that took this long in all.
constexpr double patience_seconds = 20;

struct Row {
  std::string pair;
  std::string codec;
  std::uint64_t bytes = 0;
  double encode_gbps = 0;
  double decode_gbps = 0;
  double memcpy_gbps = 0;
  int runs = 0;
  bool verified = false;
  std::string skipped;
};

/// CPU time of all threads: work handed to the one pool thread counts, waiting does not.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Timing {
  double median_seconds = 0;
  int runs = 0;
};

template <class Work>
Timing measure(Work work) {
  std::vector<double> times;
  double sum = 0;
  while (static_cast<int>(times.size()) < runs_wanted &&
         (times.size() < 2 || sum < patience_seconds)) {
    const double start = cpu_seconds();
    work();
    times.push_back(cpu_seconds() - start);
    sum += times.back();
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], static_cast<int>(times.size())};
}

double gbps(const BenchPair& pair, double seconds) {
  return static_cast<double>(pair.target.size()) / 1e9 / std::max(seconds, 1e-9);
}

double memcpy_gbps(const BenchPair& pair) {
  // Block by block, as a decoder of blocks would.
  constexpr std::size_t block = 256U << 10U;
  base::Bytes out(pair.target.size());
  const Timing timing = measure([&] {
    for (std::size_t at = 0; at < out.size(); at += block) {
      std::memcpy(out.data() + at, pair.target.data() + at, std::min(block, out.size() - at));
    }
  });
  return gbps(pair, timing.median_seconds);
}

base::Bytes encode_hfdelta(const BenchPair& pair, base::ThreadPool& pool) {
  base::MemoryBytes target(pair.target);
  base::MemoryBytes source(pair.base);
  codec::EncodeOptions options;
  options.target_path = "target";
  base::Bytes object;
  // The base's name is known to a publisher beforehand, so its hash is not part of the work.
  const auto encoded = codec::encode_delta(target, {{{}, "target", &source}}, options, pool,
                                           [&](base::ByteView bytes) {
                                             base::append(object, bytes);
                                             return Result<void>{};
                                           });
  return encoded.ok() ? object : base::Bytes{};
}

Result<void> decode_hfdelta(const BenchPair& pair, const base::Bytes& object, base::Bytes& out) {
  base::MemoryBytes bytes(object);
  HFD_TRY(const auto directory, codec::read_directory(bytes));
  base::Bytes gathered;
  std::uint64_t block = 0;
  for (std::uint32_t page = 0; page < directory->page_count(); ++page) {
    const ByteRange range = directory->page_range(page);
    HFD_TRY(const auto index,
            codec::IndexPage::parse(directory, page,
                                    base::ByteView(object).subspan(range.offset, range.size)));
    for (; block < directory->block_count() && directory->page_of_block(block) == page; ++block) {
      const codec::BlockPlan plan = index->plan(block);
      base::ByteView source;
      if (plan.sources.size() == 1) {
        source = base::ByteView(pair.base).subspan(plan.sources[0].range.offset,
                                                   plan.sources[0].range.size);
      } else {
        gathered.clear();
        for (const codec::SourceSpan& span : plan.sources) {
          base::append(gathered,
                       base::ByteView(pair.base).subspan(span.range.offset, span.range.size));
        }
        source = gathered;
      }
      HFD_TRY_VOID(codec::decode_block(
          *directory, plan, base::ByteView(object).subspan(plan.payload.offset, plan.payload.size),
          source, base::ByteSpan(out).subspan(plan.target.offset, plan.target.size)));
    }
  }
  return {};
}

Row bench_hfdelta(const BenchPair& pair) {
  base::ThreadPool pool("bench", 1);
  Row row{pair.name, "hfdelta", 0, 0, 0, 0, 0, false, {}};
  base::Bytes object;
  const Timing encode = measure([&] { object = encode_hfdelta(pair, pool); });
  base::Bytes out(pair.target.size());
  bool ok = true;
  const Timing decode = measure([&] { ok = ok && decode_hfdelta(pair, object, out).ok(); });
  row.bytes = object.size();
  row.encode_gbps = gbps(pair, encode.median_seconds);
  row.decode_gbps = gbps(pair, decode.median_seconds);
  row.runs = std::min(encode.runs, decode.runs);
  row.verified = ok && out == pair.target;
  return row;
}

Row bench_rival(const BenchPair& pair, const Rival& rival) {
  Row row{pair.name, rival.name, 0, 0, 0, 0, 0, false, {}};
  if (rival.needs_layout && pair.tensors.empty()) {
    row.skipped = "needs two safetensors files with one header";
    return row;
  }
  RivalObject object;
  const Timing encode = measure([&] { object = rival.encode(pair); });
  base::Bytes out(pair.target.size());
  bool ok = true;
  const Timing decode = measure([&] { ok = ok && rival.decode(pair, object, out); });
  row.bytes = object.bytes();
  row.encode_gbps = gbps(pair, encode.median_seconds);
  row.decode_gbps = gbps(pair, decode.median_seconds);
  row.runs = std::min(encode.runs, decode.runs);
  row.verified = ok && out == pair.target;
  return row;
}

Row bench_xdelta(const BenchPair& pair) {
  Row row{pair.name, "xdelta3", 0, 0, 0, 0, 0, false, {}};
  if (!xdelta_installed()) {
    row.skipped = "xdelta3 is not installed";
    return row;
  }
  std::string folder = std::filesystem::temp_directory_path().string() + "/hfd-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    row.skipped = "no temporary folder";
    return row;
  }
  const XdeltaRun result = run_xdelta(pair, folder);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  row.bytes = result.bytes;
  row.encode_gbps = gbps(pair, result.encode_seconds);
  row.decode_gbps = gbps(pair, result.decode_seconds);
  row.runs = 1;  // one run takes seconds
  row.verified = result.verified;
  return row;
}

Result<BenchPair> load_pair(const std::string& name, const std::string& base_path,
                            const std::string& target_path) {
  constexpr std::uint64_t bytes_max = std::uint64_t{8} << 30U;
  BenchPair pair;
  pair.name = name;
  pair.base_path = base_path;
  pair.target_path = target_path;
  HFD_TRY(pair.base, base::read_file(base_path, bytes_max));
  HFD_TRY(pair.target, base::read_file(target_path, bytes_max));
  base::MemoryBytes old_file(pair.base);
  base::MemoryBytes new_file(pair.target);
  HFD_TRY(const auto old_header, codec::read_header(old_file));
  HFD_TRY(const auto new_header, codec::read_header(new_file));
  if (!old_header || !new_header || pair.base.size() != pair.target.size() ||
      old_header->data_offset != new_header->data_offset ||
      new_header->file_bytes != pair.target.size() ||
      std::memcmp(pair.base.data(), pair.target.data(), new_header->data_offset) != 0) {
    return pair;
  }
  pair.data_offset = new_header->data_offset;
  for (const format::Tensor& tensor : new_header->tensors) {
    if (tensor.range.size > 0) {
      pair.tensors.push_back({tensor.range, format::dtype_word_bytes(tensor.dtype)});
    }
  }
  return pair;
}

std::vector<Row> bench_pair(const BenchPair& pair) {
  const double copy = memcpy_gbps(pair);
  std::vector<Row> rows;
  rows.push_back(bench_hfdelta(pair));
  for (const Rival& rival :
       {trl_raw(), trl_gap_delta(), slime_xor_zstd1(), bitx_zstd1(), zstd_patch_from()}) {
    rows.push_back(bench_rival(pair, rival));
  }
  rows.push_back(bench_xdelta(pair));
  rows.push_back(bench_rival(pair, zstd3_full()));
  for (Row& row : rows) {
    row.memcpy_gbps = copy;
  }
  return rows;
}

void print_rows(const BenchPair& pair, const std::vector<Row>& rows) {
  std::printf("%s: %zu bytes, memcpy %.2f GB/s\n", pair.name.c_str(), pair.target.size(),
              rows[0].memcpy_gbps);
  std::printf("  %-16s %12s %9s %8s %8s %8s %5s %s\n", "codec", "bytes", "x hfdelta", "enc GB/s",
              "dec GB/s", "/memcpy", "runs", "verified");
  for (const Row& row : rows) {
    if (!row.skipped.empty()) {
      std::printf("  %-16s skipped: %s\n", row.codec.c_str(), row.skipped.c_str());
      continue;
    }
    std::printf("  %-16s %12llu %9.2f %8.3f %8.3f %8.3f %5d %s\n", row.codec.c_str(),
                static_cast<unsigned long long>(row.bytes),
                static_cast<double>(row.bytes) /
                    static_cast<double>(std::max<std::uint64_t>(rows[0].bytes, 1)),
                row.encode_gbps, row.decode_gbps, row.decode_gbps / row.memcpy_gbps, row.runs,
                row.verified ? "yes" : "NO");
  }
}

base::Json rows_json(const std::vector<Row>& rows) {
  base::Json array = base::Json::array();
  for (const Row& row : rows) {
    base::Json json = base::Json::object();
    json.set("pair", row.pair);
    json.set("codec", row.codec);
    if (!row.skipped.empty()) {
      json.set("skipped", row.skipped);
    } else {
      json.set("bytes", row.bytes);
      json.set("encode_gbps", row.encode_gbps);
      json.set("decode_gbps", row.decode_gbps);
      json.set("memcpy_gbps", row.memcpy_gbps);
      json.set("runs", row.runs);
      json.set("verified", row.verified);
    }
    array.push(std::move(json));
  }
  return array;
}

struct Arguments {
  struct Files {
    std::string name;
    std::string base;
    std::string target;
  };
  std::vector<Files> pairs;
  std::string json;
};

int usage() {
  std::fputs("usage: codec_bench [--pair NAME] --base F --target F [more pairs] [--json OUT]\n",
             stderr);
  return 2;
}

/// Each --target closes a pair; --pair names the one to come.
bool parse(int argc, char** argv, Arguments& arguments) {
  Arguments::Files next;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = argv[i + 1];
    if (flag == "--pair") {
      next.name = value;
    } else if (flag == "--base") {
      next.base = value;
    } else if (flag == "--target") {
      next.target = value;
    } else if (flag == "--json") {
      arguments.json = value;
    } else {
      return false;
    }
    if (!next.base.empty() && !next.target.empty()) {
      const std::filesystem::path from(next.base);
      const std::filesystem::path to(next.target);
      next.name = next.name.empty() ? from.stem().string() + "->" + to.stem().string() : next.name;
      arguments.pairs.push_back(std::move(next));
      next = {};
    }
  }
  return argc % 2 == 1 && !arguments.pairs.empty();
}

int run(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    return usage();
  }
  std::vector<Row> all;
  for (const Arguments::Files& files : arguments.pairs) {
    const Result<BenchPair> pair = load_pair(files.name, files.base, files.target);
    if (!pair) {
      std::fprintf(stderr, "codec_bench: %s: %s\n", pair.error().object.c_str(),
                   pair.error().message.c_str());
      return 1;
    }
    const std::vector<Row> rows = bench_pair(*pair);
    print_rows(*pair, rows);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  if (!arguments.json.empty()) {
    std::ofstream(arguments.json) << rows_json(all).dump_pretty() << '\n';
  }
  const bool verified = std::all_of(
      all.begin(), all.end(), [](const Row& row) { return row.verified || !row.skipped.empty(); });
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace hfd::bench

int main(int argc, char** argv) { return hfd::bench::run(argc, argv); }
