// SPDX-License-Identifier: Apache-2.0
#include "cli/verify_command.hpp"

#include <memory>
#include <string>


#include "api/verify.hpp"
#include "cli/place.hpp"
#include "cli/report.hpp"

namespace hfd::cli {
namespace {

base::Json to_json(const api::Verification& result) {
  base::Json bad = base::Json::array();
  for (const api::BadObject& object : result.bad) {
    bad.push(base::Json::object()
                 .set("object", object.object)
                 .set("version", object.version)
                 .set("path", object.path)
                 .set("reason", object.reason));
  }
  return base::Json::object()
      .set("ok", result.bad.empty())
      .set("versions", result.versions)
      .set("objects", result.objects)
      .set("bytes", result.bytes)
      .set("bad", std::move(bad));
}

int print_people(const api::Verification& result) {
  for (const api::BadObject& object : result.bad) {
    std::string line = "damaged: " + object.object + ": " + object.reason;
    line += object.version.empty() ? std::string() : "; needed by version " + object.version;
    line += object.path.empty() ? std::string() : " for " + object.path;
    print_text(line);
  }
  return print_text(std::string(result.bad.empty() ? "ok" : "damaged") + ": " +
                    std::to_string(result.versions) + " versions, " +
                    std::to_string(result.objects) + " objects, " + people_bytes(result.bytes));
}

Result<api::Verification> compute(const std::string& place, const std::string& base) {
  const Place found = find_place(place);
  HFD_TRY(const std::unique_ptr<api::Session> session,
          api::Session::open(
              {.source = found.source, .base = base.empty() ? found.base : std::optional(base)}));
  return api::verify_bucket(*session);
}

int run_verify(const std::string& place, const std::string& base, bool json) {
  const auto result = compute(place, base);
  if (!result.ok()) {
    return report(result.error(), json);
  }
  const int printed = json ? print_json(to_json(*result)) : print_people(*result);
  if (result->bad.empty()) {
    return printed;
  }
  const std::string count = std::to_string(result->bad.size());
  return report(Error{ErrorCode::corrupt, "damaged: objects are wrong or missing: " + count + ", first " +
                                              result->bad.front().reason,
                      result->bad.front().object, "restore them from a copy of the bucket"},
                false);
}

}  // namespace

void add_verify_command(Command& program) {
  Command command = program.add_command("verify", "Check every object that the versions of a bucket need");
  const auto place = std::make_shared<std::string>();
  const auto base = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  command.required("source", *place, "A bucket, or a mount of one");
  command.text("--base", *base, "Where the base model is, if not where the bucket says");
  command.flag("--json", *json, "One JSON document");
  command.footer(
      "Exit code 1 when something is damaged or missing.\nExample:\n  hfdeltafs verify ./deltas");
  command.runs([=] { return run_verify(*place, *base, *json); });
}

}  // namespace hfd::cli
