// SPDX-License-Identifier: Apache-2.0
#include "cli/control.hpp"

#include <sys/stat.h>

#include <thread>

#include <doctest/doctest.h>

#include "temp_folder.hpp"

namespace hfd::cli {
namespace {

using base::Json;

Json echo(const Json& request) { return std::move(Json::object().set("echo", request)); }

std::unique_ptr<ControlServer> serve(const std::string& folder, ControlServer::Answer answer) {
  auto server = ControlServer::open(folder, std::move(answer));
  INFO((server.ok() ? std::string() : server.error().message + " " + server.error().object));
  REQUIRE(server.ok());
  return std::move(*server);
}

Json request(const std::string& what) { return std::move(Json::object().set("command", what)); }

TEST_SUITE("cli/control") {
  TEST_CASE("a request reaches the daemon and its answer comes back") {
    const test::TempFolder temp;
    const auto server = serve(temp.path(), echo);
    const auto answer = ask_daemon(server->path(), request("commit"));
    REQUIRE(answer.ok());
    CHECK(answer->dump() == R"({"echo":{"command":"commit"}})");
    CHECK(ask_daemon(server->path(), request("again")).ok());
  }

  TEST_CASE("folders longer than a socket address work") {
    const test::TempFolder temp;
    const std::string folder = temp / std::string(100, 'a') + "/" + std::string(100, 'b');
    REQUIRE(base::make_folders(folder).ok());
    const auto server = serve(folder, echo);
    CHECK(server->path().size() > 200);
    const auto answer = ask_daemon(server->path(), request("status"));
    REQUIRE(answer.ok());
    CHECK(answer->dump() == R"({"echo":{"command":"status"}})");
  }

  TEST_CASE("messages larger than a socket's buffer come through whole") {
    const test::TempFolder temp;
    const auto server = serve(temp.path(), echo);
    const std::string text(3U << 20U, 'x');
    const auto answer = ask_daemon(server->path(), request(text));
    REQUIRE(answer.ok());
    REQUIRE(answer->find("echo") != nullptr);
    CHECK(*answer->find("echo")->string_member("command") == text);
  }

  TEST_CASE("several ask at once and each gets its own answer") {
    const test::TempFolder temp;
    const auto server = serve(temp.path(), echo);
    std::vector<std::string> answers(6);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      threads.emplace_back([&, i] {
        const auto answer = ask_daemon(server->path(), request(std::to_string(i)));
        answers[i] = answer.ok() ? answer->dump() : answer.error().message;
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (std::size_t i = 0; i < answers.size(); ++i) {
      CHECK(answers[i] == R"({"echo":{"command":")" + std::to_string(i) + R"("}})");
    }
  }

  TEST_CASE("an error document becomes the error again, for every code") {
    for (int number = 0; number <= static_cast<int>(ErrorCode::io); ++number) {
      const auto code = static_cast<ErrorCode>(number);
      INFO("code " << error_code_name(code));
      const Error back = error_from_document(error_document(Error{code, "what: why", "it", "do"}));
      CHECK(back.code == code);
      CHECK(back.message == "what: why");
      CHECK(back.object == "it");
      CHECK(back.hint == "do");
    }
  }

  TEST_CASE("an error of the daemon is the asker's error") {
    const test::TempFolder temp;
    const auto server = serve(temp.path(), [](const Json&) {
      return error_document(Error{ErrorCode::incomplete, "held back", "a.safetensors", "write it"});
    });
    const auto answer = ask_daemon(server->path(), request("commit"));
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().code == ErrorCode::incomplete);
    CHECK(answer.error().message == "held back");
    CHECK(answer.error().object == "a.safetensors");
    CHECK(answer.error().hint == "write it");
  }

  TEST_CASE("a document that says nothing of an error is io") {
    CHECK(error_from_document(Json::object()).code == ErrorCode::io);
    const Error odd =
        error_from_document(std::move(Json::object().set("error", std::move(Json::object().set("code", "new")))));
    CHECK(odd.code == ErrorCode::io);
  }

  TEST_CASE("nobody listening is an error that names the socket") {
    const test::TempFolder temp;
    std::string path;
    {
      const auto server = serve(temp.path(), echo);
      path = server->path();
    }
    const auto answer = ask_daemon(path, request("status"));
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().object == path);
  }

  TEST_CASE("a socket left by a dead daemon does not stop the next one, and only the owner may use it") {
    const test::TempFolder temp;
    REQUIRE(base::replace_file(temp / "control.sock", {}).ok());
    const auto server = serve(temp.path(), echo);
    CHECK(ask_daemon(server->path(), request("status")).ok());
    struct stat status {};
    REQUIRE(::stat(server->path().c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600U);
  }

  TEST_CASE("a mount is found from any folder below it, and asked over the socket it names") {
    const test::TempFolder temp;
    const auto server = serve(temp.path(), echo);
    REQUIRE(base::make_folders(temp / "m/.hfdelta").ok());
    REQUIRE(base::make_folders(temp / "m/deep/er").ok());
    const std::string status = R"({"mounts":[{"control":")" + server->path() + R"("}]})";
    REQUIRE(base::replace_file(temp / "m/.hfdelta/status.json", base::as_bytes(status)).ok());
    for (const char* folder : {"m", "m/deep/er"}) {
      const auto found = mount_status(temp / folder);
      REQUIRE(found.ok());
      CHECK(found->dump() == status);
      CHECK(ask_mount(temp / folder, request("x"))->dump() == R"({"echo":{"command":"x"}})");
    }
  }

  TEST_CASE("a folder that is no mount is not_found, a mount without a socket corrupt") {
    const test::TempFolder temp;
    const auto none = mount_status(temp.path());
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().code == ErrorCode::not_found);
    CHECK(mount_status(temp / "missing").error().code == ErrorCode::not_found);
    REQUIRE(base::make_folders(temp / ".hfdelta").ok());
    REQUIRE(base::replace_file(temp / ".hfdelta/status.json", base::as_bytes(R"({"mounts":[]})")).ok());
    const auto asked = ask_mount(temp.path(), request("x"));
    REQUIRE_FALSE(asked.ok());
    CHECK(asked.error().code == ErrorCode::corrupt);
  }
}

}  // namespace
}  // namespace hfd::cli
