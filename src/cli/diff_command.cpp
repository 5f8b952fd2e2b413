// SPDX-License-Identifier: Apache-2.0
#include "cli/diff_command.hpp"

#include <memory>
#include <string>
#include <vector>


#include "api/diff.hpp"
#include "cli/place.hpp"
#include "cli/report.hpp"

namespace hfd::cli {
namespace {

struct Arguments {
  std::vector<std::string> words;  ///< [DIR|URI] A B
  std::string ref;
  bool json = false;
};

base::Json strings(const std::vector<std::string>& list) {
  base::Json out = base::Json::array();
  for (const std::string& text : list) {
    out.push(text);
  }
  return out;
}

base::Json to_json(const api::TensorDifference& tensor) {
  base::Json shape = base::Json::array();
  for (const std::uint64_t side : tensor.shape) {
    shape.push(side);
  }
  return base::Json::object()
      .set("path", tensor.path)
      .set("name", tensor.name)
      .set("dtype", tensor.dtype)
      .set("shape", std::move(shape))
      .set("elements", tensor.elements)
      .set("changed_elements", tensor.changed_elements)
      .set("bytes", tensor.bytes)
      .set("status", api::tensor_status_name(tensor.status))
      .set("from", tensor.from.empty() ? base::Json() : base::Json(tensor.from))
      .set("from_path", tensor.from_path.empty() ? base::Json() : base::Json(tensor.from_path));
}

base::Json to_json(const api::VersionDifference& difference) {
  base::Json tensors = base::Json::array();
  for (const api::TensorDifference& tensor : difference.tensors) {
    tensors.push(to_json(tensor));
  }
  return base::Json::object()
      .set("a", difference.a.hex())
      .set("b", difference.b.hex())
      .set("files_added", strings(difference.files_added))
      .set("files_removed", strings(difference.files_removed))
      .set("files_changed", strings(difference.files_changed))
      .set("tensors", std::move(tensors));
}

int print_people(const api::VersionDifference& difference) {
  for (const std::string& path : difference.files_added) {
    print_text("added    " + path);
  }
  for (const std::string& path : difference.files_removed) {
    print_text("removed  " + path);
  }
  for (const std::string& path : difference.files_changed) {
    print_text("changed  " + path);
  }
  std::size_t same = 0;
  for (const api::TensorDifference& tensor : difference.tensors) {
    if (tensor.status == api::TensorStatus::same) {
      ++same;
      continue;
    }
    print_text("  " + std::string(api::tensor_status_name(tensor.status)) + "  " + tensor.path +
               ": " + tensor.name + "  " + tensor.dtype + "  " +
               std::to_string(tensor.changed_elements) + " of " + std::to_string(tensor.elements) +
               " elements" + (tensor.from.empty() ? std::string() : "  from " + tensor.from));
  }
  return print_text(std::to_string(same) + " of " + std::to_string(difference.tensors.size()) +
                    " tensors are the same");
}

Result<api::VersionDifference> compute(const Arguments& arguments) {
  const bool has_place = arguments.words.size() == 3;
  if (!has_place && is_place(arguments.words[0])) {
    return Error{ErrorCode::invalid_argument, "two versions are needed after the place", arguments.words[0],
                 "write hfdeltafs diff PLACE A B"};
  }
  const std::string& a = arguments.words[has_place ? 1 : 0];
  const std::string& b = arguments.words[has_place ? 2 : 1];
  HFD_TRY(const std::unique_ptr<api::Session> session,
          open_place(has_place ? arguments.words[0] : std::string(), arguments.ref));
  HFD_TRY(const lineage::VersionPtr version_a, session->version(a));
  HFD_TRY(const lineage::VersionPtr version_b, session->version(b));
  return api::diff_versions(*session, version_a, version_b);
}

int run_diff(const Arguments& arguments) {
  const auto difference = compute(arguments);
  if (!difference.ok()) {
    return report(difference.error(), arguments.json);
  }
  return arguments.json ? print_json(to_json(*difference)) : print_people(*difference);
}

}  // namespace

void add_diff_command(Command& program) {
  Command command = program.add_command("diff", "Compare two versions tensor by tensor");
  const auto arguments = std::make_shared<Arguments>();
  command.words("words", arguments->words, 2, 3, "[DIR|URI] A B: a mount or bucket, and two versions");
  command.text("--ref", arguments->ref, "The line that head and vN are of");
  command.flag("--json", arguments->json, "One JSON document");
  command.footer("Example:\n  hfdeltafs diff ./deltas head~1 head");
  command.runs([arguments] { return run_diff(*arguments); });
}

}  // namespace hfd::cli
