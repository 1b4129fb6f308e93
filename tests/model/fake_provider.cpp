#include "fake_provider.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/sha.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace allranks::model::testing {
namespace {

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Reads requests from one connection.
class Input {
 public:
  explicit Input(int fd) : fd_(fd) {}

  bool Read(Seen* seen) {
    std::size_t end;
    while ((end = bytes_.find("\r\n\r\n")) == std::string::npos)
      if (!More()) return false;
    std::string head = bytes_.substr(0, end + 2);
    bytes_.erase(0, end + 4);
    const std::size_t line = head.find("\r\n");
    const std::string first = head.substr(0, line);
    const std::size_t a = first.find(' '), b = first.rfind(' ');
    if (a == std::string::npos || b <= a) return false;
    seen->method = first.substr(0, a);
    seen->target = first.substr(a + 1, b - a - 1);
    for (std::size_t at = line + 2; at < head.size();) {
      const std::size_t next = head.find("\r\n", at);
      const std::string header = head.substr(at, next - at);
      const std::size_t colon = header.find(':');
      if (colon != std::string::npos) {
        std::size_t value = colon + 1;
        while (value < header.size() && header[value] == ' ') ++value;
        seen->headers[Lower(header.substr(0, colon))] = header.substr(value);
      }
      at = next + 2;
    }
    const std::size_t length = std::strtoul(seen->headers["content-length"].c_str(), nullptr, 10);
    if (length > (64u << 20)) return false;
    while (bytes_.size() < length)
      if (!More()) return false;
    seen->body = bytes_.substr(0, length);
    bytes_.erase(0, length);
    return true;
  }

 private:
  bool More() {
    char piece[65536];
    const ssize_t n = recv(fd_, piece, sizeof piece, 0);
    if (n <= 0) return false;
    bytes_.append(piece, static_cast<std::size_t>(n));
    return true;
  }
  int fd_;
  std::string bytes_;
};

bool SendAll(int fd, const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

std::string Chunk(const std::string& bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + bytes + "\r\n";
}

// Of a JSON body, without a parser: its syntax is checked elsewhere.
bool SaysStream(const std::string& body) {
  return body.find("\"stream\":true") != std::string::npos;
}
std::string ModelIn(const std::string& body) {
  const std::size_t at = body.find("\"model\":\"");
  if (at == std::string::npos) return "";
  return body.substr(at + 9, body.find('"', at + 9) - at - 9);
}

void Route(Seen* seen) {
  const std::string& target = seen->target;
  const std::string models = "/v1beta/models/";
  seen->stream = SaysStream(seen->body);
  seen->model = ModelIn(seen->body);
  if (target == "/v1/responses") {
    seen->wire = Wire::kResponses;
  } else if (target == "/v1/chat/completions") {
    seen->wire = Wire::kChat;
  } else if (target == "/v1/messages") {
    seen->wire = Wire::kAnthropic;
  } else if (target.rfind(models, 0) == 0) {
    const std::size_t colon = target.find(':');
    if (colon == std::string::npos) return;
    const std::string method = target.substr(colon);
    seen->model = target.substr(models.size(), colon - models.size());
    seen->stream = method == ":streamGenerateContent?alt=sse";
    if (seen->stream || method == ":generateContent") seen->wire = Wire::kGemini;
  }
}

// Where each provider documents the key's place.
std::string KeyIn(const Seen& seen) {
  const char* name = seen.wire == Wire::kAnthropic ? "x-api-key"
                     : seen.wire == Wire::kGemini  ? "x-goog-api-key"
                                                   : "authorization";
  const auto found = seen.headers.find(name);
  if (found == seen.headers.end()) return "";
  const std::string bearer = "Bearer ";
  if (std::string(name) == "authorization" && found->second.rfind(bearer, 0) == 0)
    return found->second.substr(bearer.size());
  return found->second;
}

}  // namespace

std::string Sha256(const std::string& bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string text;
  char hex[3];
  for (const unsigned char byte : digest) {
    std::snprintf(hex, sizeof hex, "%02x", byte);
    text += hex;
  }
  return text;
}

double Draw(unsigned long seed, const std::string& text, int repeat) {
  const std::string hash =
      Sha256(std::to_string(seed) + "/" + std::to_string(repeat) + "/" + text).substr(0, 13);
  return static_cast<double>(std::strtoull(hash.c_str(), nullptr, 16)) / 4503599627370496.0;
}

struct FakeProvider::State {
  Options options;
  int listener = -1;
  int port = 0;
  std::atomic<bool> closing = false;
  std::thread acceptor;
  std::mutex mutex;
  std::vector<std::thread> threads;
  std::set<int> open;
  std::vector<Seen> requests;
  std::map<std::string, int> repeats;
  std::vector<Charge> charges;
  std::vector<std::string> complaints;
  int at_once = 0, most_at_once = 0, connections = 0;
  static inline thread_local bool inside = false;  // a connection is a thread

  void Accept() {
    for (;;) {
      const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex);
      if (closing || fd < 0) {
        if (fd >= 0) close(fd);
        if (closing) return;
        continue;
      }
      const int one = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      open.insert(fd);
      ++connections;
      threads.emplace_back([this, fd] { Serve(fd); });
    }
  }

  void Serve(int fd) {
    Input input(fd);
    for (;;) {
      Seen seen;
      if (closing || !input.Read(&seen)) break;
      if (!One(fd, std::move(seen))) break;
    }
    const std::lock_guard lock(mutex);
    open.erase(fd);
    close(fd);
  }

  // False: the connection is over.
  bool One(int fd, Seen seen) {
    Route(&seen);
    bool full = false;
    {
      const std::lock_guard lock(mutex);
      seen.number = static_cast<int>(requests.size());
      seen.repeat = repeats[seen.body]++;
      requests.push_back(seen);
      most_at_once = std::max(most_at_once, ++at_once);
      full = options.capacity > 0 && at_once > options.capacity;
    }
    inside = true;
    const bool more = full ? Refuse(fd, seen) : Checked(fd, seen);
    LeavePlace();
    return more;
  }

  // Before the end of a reply is sent: who has it may ask again at once.
  void LeavePlace() {
    const std::lock_guard lock(mutex);
    if (inside) --at_once;
    inside = false;
  }

  bool Refuse(int fd, const Seen& seen) {
    Answer answer;
    answer.fault = Fault::kTooMany;
    return Error(fd, seen, answer);
  }

  bool Checked(int fd, const Seen& seen) {
    std::string wrong = RequestFault(seen);
    if (!wrong.empty()) {
      const std::lock_guard lock(mutex);
      complaints.push_back(wrong);
    }
    Answer answer;
    if (!wrong.empty()) {
      answer.fault = Fault::kTooLong;
      answer.message = wrong;
    } else if (!options.key.empty() && KeyIn(seen) != options.key) {
      answer.fault = Fault::kBadKey;
    } else {
      answer = options.decide(seen);
    }
    Sleep(answer.delay_ms);
    switch (answer.fault) {
      case Fault::kTooMany:
      case Fault::kQuota:
      case Fault::kServerError:
      case Fault::kOverloaded:
      case Fault::kBadKey:
      case Fault::kTooLong:
      case Fault::kNoModel:
      case Fault::kFiltered:
        return Error(fd, seen, answer);
      case Fault::kReset:
        Reset(fd);
        return false;
      case Fault::kSilence:
        WaitForEnd(fd);
        return false;
      default:
        if (seen.stream && !answer.no_stream) return Stream(fd, seen, answer);
        return Document(fd, seen, answer);
    }
  }

  void Sleep(int ms) const {
    for (int left = ms; left > 0 && !closing; left -= 20)
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min(left, 20)));
  }

  void WaitForEnd(int fd) const {
    while (!closing) {
      pollfd poller{fd, POLLIN | POLLRDHUP, 0};
      if (poll(&poller, 1, 20) > 0) return;
    }
  }

  static void Reset(int fd) {
    const linger at_once_please{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once_please, sizeof at_once_please);
  }

  void Took(const Seen& seen, const Answer& answer) {
    LeavePlace();
    const Charge charge{seen.wire, Sha256(seen.body), answer.tokens};
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    const std::lock_guard lock(mutex);
    charges.push_back(charge);
    if (options.log.empty()) return;
    std::FILE* file = std::fopen(options.log.c_str(), "a");
    if (file == nullptr) return;
    std::fprintf(file, "%lld %s %lu %lu\n", static_cast<long long>(now.count()),
                 charge.body_hash.c_str(), charge.tokens.input, charge.tokens.output);
    std::fclose(file);
  }

  bool Error(int fd, const Seen& seen, const Answer& answer) {
    const RenderedError error = RenderError(seen, answer);
    std::string head = "HTTP/1.1 " + std::to_string(error.status) +
                       " No\r\nContent-Type: application/json\r\nContent-Length: " +
                       std::to_string(error.body.size()) + "\r\n";
    LeavePlace();
    if (!answer.retry_after.empty()) head += answer.retry_after + "\r\n";
    return SendAll(fd, head + "\r\n" + error.body);
  }

  bool Document(int fd, const Seen& seen, const Answer& answer) {
    Seen plain = seen;
    plain.stream = false;
    std::string body = RenderReply(plain, answer).pieces.front();
    std::size_t length = body.size();
    std::size_t sent = body.size();
    switch (answer.fault) {
      case Fault::kHalf:
      case Fault::kHalfReset:
      case Fault::kStall:
      case Fault::kLongLength:
        sent = body.size() / 2;
        break;
      case Fault::kUnended:
      case Fault::kErrorInside:  // there is no inside: a document that is not whole
      case Fault::kShortLength:
        length = sent = body.size() / 2;
        break;
      case Fault::kInvalidJson:
        body[body.size() / 2] = '\x01';
        break;
      default:
        Took(seen, answer);
    }
    const bool last = length != sent || answer.fault == Fault::kShortLength;
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" +
                             std::string(last ? "Connection: close\r\n" : "") +
                             "Content-Length: " + std::to_string(length) + "\r\n\r\n";
    if (!SendAll(fd, head + body.substr(0, sent))) return false;
    if (answer.fault == Fault::kStall) WaitForEnd(fd);
    if (answer.fault == Fault::kHalfReset) Reset(fd);
    return !last;
  }

  bool Stream(int fd, const Seen& seen, const Answer& answer) {
    const Rendered reply = RenderReply(seen, answer);
    const bool lies = answer.fault == Fault::kLongLength || answer.fault == Fault::kShortLength;
    std::string cut, rest;  // before the end, and the end
    const bool after_end =
        answer.fault == Fault::kCutAfterEnd || answer.fault == Fault::kStallAfterEnd;
    const bool whole = answer.fault == Fault::kNone || after_end;
    for (std::size_t i = 0; i < reply.pieces.size(); ++i)
      (i < reply.end ? cut : rest) += reply.pieces[i];
    if (!whole) {
      // Somewhere inside an event, or after one where the stream goes on as one does.
      const std::size_t keep = std::max<std::size_t>(1, reply.end / 2);
      cut.clear();
      for (std::size_t i = 0; i < std::min(keep, reply.end); ++i) cut += reply.pieces[i];
      if (answer.fault == Fault::kInvalidJson)
        cut += "data: {\"choices\": [}" + answer.line_end + answer.line_end;
      if (answer.fault == Fault::kErrorInside) cut += RenderErrorEvent(seen, answer);
      if (answer.fault == Fault::kHalf || answer.fault == Fault::kHalfReset)
        cut.resize(cut.size() - cut.size() / 7);
    }
    std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    if (lies) {
      const std::size_t length =
          answer.fault == Fault::kLongLength ? cut.size() + 1000 : cut.size() / 2;
      head += "Connection: close\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
      SendAll(fd, head + cut);
      return false;
    }
    if (!SendAll(fd, head + "Transfer-Encoding: chunked\r\n\r\n")) return false;
    if (!Pieces(fd, cut, answer.piece)) return false;
    if (whole) {
      Took(seen, answer);
      if (after_end) rest = reply.pieces[reply.end];
      if (!Pieces(fd, rest, answer.piece)) return false;
    }
    switch (answer.fault) {
      case Fault::kStall:
      case Fault::kStallAfterEnd:
        WaitForEnd(fd);
        return false;
      case Fault::kHalfReset:
        Reset(fd);
        return false;
      case Fault::kHalf:
      case Fault::kCutAfterEnd:
        return false;
      default:
        return SendAll(fd, "0\r\n\r\n");
    }
  }

  static bool Pieces(int fd, const std::string& bytes, std::size_t size) {
    if (bytes.empty()) return true;
    if (size == 0) return SendAll(fd, Chunk(bytes));
    // Each piece is a chunk of its own: HTTP's framing keeps them apart whatever TCP joins.
    std::string framed;
    for (std::size_t at = 0; at < bytes.size(); at += size) framed += Chunk(bytes.substr(at, size));
    return SendAll(fd, framed);
  }
};

FakeProvider::FakeProvider(Options options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(state_->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(state_->options.port));
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(state_->listener, any, sizeof address) != 0 || listen(state_->listener, 512) != 0) {
    std::perror("fake_provider");
    std::abort();
  }
  socklen_t size = sizeof address;
  getsockname(state_->listener, any, &size);
  state_->port = ntohs(address.sin_port);
  state_->acceptor = std::thread([state = state_.get()] { state->Accept(); });
}

FakeProvider::FakeProvider(std::function<Answer(const Seen&)> decide)
    : FakeProvider([&] {
        Options options;
        options.decide = std::move(decide);
        return options;
      }()) {}

FakeProvider::~FakeProvider() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->closing = true;
    for (const int fd : state_->open) shutdown(fd, SHUT_RDWR);
  }
  shutdown(state_->listener, SHUT_RDWR);
  state_->acceptor.join();
  for (std::thread& thread : state_->threads) thread.join();
  close(state_->listener);
}

int FakeProvider::port() const { return state_->port; }

std::string FakeProvider::Endpoint(Wire wire) const {
  return "http://127.0.0.1:" + std::to_string(state_->port) +
         (wire == Wire::kGemini ? "/v1beta" : "/v1");
}

std::vector<Seen> FakeProvider::requests() const {
  const std::lock_guard lock(state_->mutex);
  return state_->requests;
}
std::vector<Charge> FakeProvider::charges() const {
  const std::lock_guard lock(state_->mutex);
  return state_->charges;
}
std::vector<std::string> FakeProvider::complaints() const {
  const std::lock_guard lock(state_->mutex);
  return state_->complaints;
}
int FakeProvider::most_at_once() const {
  const std::lock_guard lock(state_->mutex);
  return state_->most_at_once;
}
int FakeProvider::connections() const {
  const std::lock_guard lock(state_->mutex);
  return state_->connections;
}

}  // namespace allranks::model::testing
