// SPDX-License-Identifier: Apache-2.0
// Commands and their options as the rest of cli sees them. CLI11 stands behind it in one file: its
// header costs some 15 seconds of compiling wherever it is included. Options write into variables that
// must live as long as the program runs; what a command does is run after all words are understood.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hfd::cli {

/// One command (or the program itself). A handle: copies name the same command.
class Command {
 public:
  Command add_command(const std::string& name, const std::string& description);
  /// "name" is a positional word, "-n,--name" an option. The target's value now is the default. An
  /// empty word is refused: it is nearly always a variable of a script that was not set.
  void text(const std::string& name, std::string& target, const std::string& help);
  void text(const std::string& name, std::optional<std::string>& target, const std::string& help);
  /// Like text(), but may be empty.
  void message(const std::string& name, std::string& target, const std::string& help);
  void required(const std::string& name, std::string& target, const std::string& help);
  /// So many words in a row.
  void words(const std::string& name, std::vector<std::string>& target, std::size_t count_min, std::size_t count_max,
             const std::string& help);
  /// An option that may be given several times, with one value each.
  void repeated(const std::string& name, std::vector<std::string>& target, const std::string& help);
  void number(const std::string& name, std::size_t& target, const std::string& help);
  void flag(const std::string& name, bool& target, const std::string& help);
  void choice(const std::string& name, std::string& target, const std::vector<std::string>& allowed,
              const std::string& help);
  /// These two options are not given together.
  void exclude(const std::string& name, const std::string& other);
  /// Shown below the help; has an example.
  void footer(const std::string& text);
  /// What the command does; returns the exit code.
  void runs(std::function<int()> run);

 private:
  friend int run_command_line(int argc, char** argv, const std::function<void(Command&)>& add_commands);
  struct State;
  Command(CLI::App* app, std::shared_ptr<State> state);
  CLI::App* app_;
  std::shared_ptr<State> state_;
};

/// Understands the words, runs the chosen command, returns the exit code. Wrong words: one line, code 2.
int run_command_line(int argc, char** argv, const std::function<void(Command&)>& add_commands);

}  // namespace hfd::cli
