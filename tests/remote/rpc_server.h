#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "ggml-backend.h"
#include "ggml-rpc.h"

namespace headrace::testing {

/// ggml's RPC server over the CPU, on a free loopback port, in a process of its own.
class RpcServer {
public:
    /// room: bytes that it can allocate, whatever it says is free; 0: all there are.
    explicit RpcServer(std::size_t room = 0) : port_(free_port()), room_(room) { start(); }
    ~RpcServer() { stop(); }
    RpcServer(const RpcServer&) = delete;
    RpcServer& operator=(const RpcServer&) = delete;

    std::string device() const { return "rpc://" + endpoint(); }
    int port() const { return port_; }

    /// The host fails, and comes back at the same port.
    void stop() {
        if (process_ <= 0) return;
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
        process_ = -1;
    }
    void start() {
        process_ = fork();
        if (process_ < 0) throw std::runtime_error("fork failed");
        if (process_ == 0) serve();
        wait_until_it_answers();
    }
    /// It hangs, and goes on.
    void freeze() const { kill(process_, SIGSTOP); }
    void thaw() const { kill(process_, SIGCONT); }

private:
    std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }

    static sockaddr_in address(int port) {
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        a.sin_port = htons(static_cast<std::uint16_t>(port));
        return a;
    }
    static int free_port() {
        const int s = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in a = address(0);
        socklen_t size = sizeof(a);
        if (bind(s, reinterpret_cast<sockaddr*>(&a), size) != 0) throw std::runtime_error("no free port");
        getsockname(s, reinterpret_cast<sockaddr*>(&a), &size);
        close(s);
        return ntohs(a.sin_port);
    }
    [[noreturn]] void serve() {
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves no server behind
        freopen("/dev/null", "w", stdout);
        if (room_ > 0) limit_memory();
        ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
        ggml_backend_rpc_start_server(endpoint().c_str(), nullptr, 1, 1, &cpu);
        _exit(1);
    }
    void limit_memory() const {
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlim_t bytes = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + room_;
        const rlimit limit{bytes, bytes};
        setrlimit(RLIMIT_AS, &limit);
    }
    void wait_until_it_answers() {
        for (int i = 0; i < 1500; ++i) {  // half a minute, for a machine with other work
            const int s = socket(AF_INET, SOCK_STREAM, 0);
            sockaddr_in a = address(port_);
            const bool connected = connect(s, reinterpret_cast<sockaddr*>(&a), sizeof(a)) == 0;
            close(s);
            if (connected) return;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        throw std::runtime_error("the RPC server does not answer");
    }

    int port_;
    std::size_t room_;
    pid_t process_ = -1;
};

}  // namespace headrace::testing
