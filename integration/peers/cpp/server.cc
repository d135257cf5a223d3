// A server of gRPC's test service for tests: see ../README.md.

#include <getopt.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <thread>

#include "kinds.h"

namespace {

constexpr long kDayMs = 24 * 60 * 60 * 1000;

struct Flags {
  long port = 0;
  std::string name = "cpp";
  long max_age_ms = 0;
  long max_age_grace_ms = 0;
};

class Service final : public grpc::testing::TestService::CallbackService {
 public:
  explicit Service(Node& node) : node_(node) {}

  grpc::ServerUnaryReactor* EmptyCall(grpc::CallbackServerContext* context, const grpc::testing::Empty*,
                                      grpc::testing::Empty*) override {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* UnaryCall(grpc::CallbackServerContext* context, const SimpleRequest* request,
                                      SimpleResponse* response) override {
    return Handle<::UnaryCall>(node_, context, request, response);
  }

  grpc::ServerWriteReactor<StreamingOutputCallResponse>* StreamingOutputCall(
      grpc::CallbackServerContext* context, const StreamingOutputCallRequest* request) override {
    return Handle<OutputCall>(node_, context, request);
  }

  grpc::ServerReadReactor<StreamingInputCallRequest>* StreamingInputCall(
      grpc::CallbackServerContext* context, StreamingInputCallResponse* response) override {
    return Handle<InputCall>(node_, context, response);
  }

  grpc::ServerBidiReactor<StreamingOutputCallRequest, StreamingOutputCallResponse>* FullDuplexCall(
      grpc::CallbackServerContext* context) override {
    return Handle<DuplexCall>(node_, context);
  }

 private:
  Node& node_;
};

[[noreturn]] void Refuse(const std::string& why) {
  std::cerr << "server: " << why << std::endl;
  std::exit(2);
}

long Number(const std::string& flag, const std::string& value, long most) {
  char* end = nullptr;
  errno = 0;
  const long n = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || errno != 0 || n < 0 || n > most)
    Refuse("--" + flag + " is \"" + value + "\": allowed are 0 to " + std::to_string(most));
  return n;
}

Flags Parse(int argc, char** argv) {
  static const option known[] = {{"port", required_argument, nullptr, 'p'},
                                 {"name", required_argument, nullptr, 'n'},
                                 {"max-age-ms", required_argument, nullptr, 'a'},
                                 {"max-age-grace-ms", required_argument, nullptr, 'g'},
                                 {nullptr, 0, nullptr, 0}};
  Flags flags;
  for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    switch (c) {
      case 'p': flags.port = Number("port", optarg, 65535); break;
      case 'n': flags.name = optarg; break;
      case 'a': flags.max_age_ms = Number("max-age-ms", optarg, kDayMs); break;
      case 'g': flags.max_age_grace_ms = Number("max-age-grace-ms", optarg, kDayMs); break;
      default: std::exit(2);
    }
  }
  if (optind < argc) Refuse(std::string("unexpected argument \"") + argv[optind] + "\"");
  if (flags.name.empty()) Refuse("--name is \"\": a name is needed");
  return flags;
}

// Obey does what standard input says, and ends the process with it.
[[noreturn]] void Obey(Node& node) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    int code = 0;
    words >> verb >> code;
    if (verb == "end") node.EndHeld({static_cast<grpc::StatusCode>(code), code ? "ended on request" : ""});
    std::cout << "live " << node.Live() << std::endl;
  }
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = Parse(argc, argv);
  // Before gRPC starts threads, so that SIGTERM comes to sigwait alone.
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, nullptr);

  Node node(flags.name);
  Service service(node);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(flags.port), grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  builder.RegisterService(&node.load());
  if (flags.max_age_ms > 0)
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, static_cast<int>(flags.max_age_ms));
  if (flags.max_age_grace_ms > 0)
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, static_cast<int>(flags.max_age_grace_ms));
  auto server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::cerr << "server: cannot listen on 127.0.0.1:" << flags.port << std::endl;
    return 1;
  }
  std::cout << "listening " << port << std::endl;

  std::thread(Obey, std::ref(node)).detach();
  int signal = 0;
  sigwait(&term, &signal);
  server->Shutdown();
  _exit(0);
}
