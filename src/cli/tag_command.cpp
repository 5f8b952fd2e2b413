// SPDX-License-Identifier: Apache-2.0
#include "cli/tag_command.hpp"

#include <memory>
#include <string>
#include <vector>


#include "api/history.hpp"
#include "cli/place.hpp"
#include "cli/report.hpp"

namespace hfd::cli {
namespace {

struct Arguments {
  std::vector<std::string> words;  ///< [DIR|URI] NAME [VERSION]
  std::string removed;
  std::string ref;
  bool list = false;
  bool json = false;
};

base::Json tag_json(const std::string& name, const VersionId& id) {
  return base::Json::object().set("name", name).set("version", id.hex());
}

Result<int> run_list(const Arguments& arguments, api::Session& session) {
  HFD_TRY(const auto tags, api::list_tags(session));
  base::Json list = base::Json::array();
  for (const auto& [name, id] : tags) {
    if (arguments.json) {
      list.push(tag_json(name, id));
    } else {
      print_text(name + "  " + id.hex());
    }
  }
  return arguments.json ? print_json(list) : 0;
}

Result<int> run(const Arguments& arguments) {
  // One word is a name (or, with --list and --delete, a place); of several the first is a place if
  // it looks so.
  std::vector<std::string> words = arguments.words;
  std::string place;
  const bool names_nothing = arguments.list || !arguments.removed.empty();
  if (!words.empty() && (is_place(words.front()) || names_nothing || words.size() == 3)) {
    place = words.front();
    words.erase(words.begin());
  }
  HFD_TRY(const std::unique_ptr<api::Session> session, open_place(place, arguments.ref));
  if (arguments.list) {
    return run_list(arguments, *session);
  }
  if (!arguments.removed.empty()) {
    HFD_TRY_VOID(api::delete_tag(*session, arguments.removed));
    return 0;
  }
  if (words.empty() || words.size() > 2) {
    Error error{ErrorCode::invalid_argument, "cannot tag: a name is missing", place};
    return std::move(error).with_hint("hfdeltafs tag [DIR|URI] NAME [VERSION]");
  }
  HFD_TRY(const VersionId id,
          api::set_tag(*session, words[0], words.size() == 2 ? words[1] : std::string()));
  return arguments.json ? print_json(tag_json(words[0], id)) : print_text(id.hex());
}

int run_tag(const Arguments& arguments) {
  const auto code = run(arguments);
  return code.ok() ? *code : report(code.error(), arguments.json);
}

}  // namespace

void add_tag_command(Command& program) {
  Command command = program.add_command("tag", "Give a version a name, list names, take one away");
  const auto arguments = std::make_shared<Arguments>();
  command.words("words", arguments->words, 0, 3,
                "[DIR|URI] NAME [VERSION]: the newest version when left out");
  command.flag("--list", arguments->list, "List all tags");
  command.text("--delete", arguments->removed, "Take this tag away; the version stays");
  command.exclude("--delete", "--list");
  command.text("--ref", arguments->ref, "The line that head and vN are of");
  command.flag("--json", arguments->json, "One JSON document");
  command.footer(
      "Examples:\n  hfdeltafs tag ./deltas best head~2\n  hfdeltafs tag ./deltas --list");
  command.runs([arguments] { return run_tag(*arguments); });
}

}  // namespace hfd::cli
