// The pseudo-terminal that a host opens as it opens the serial port of a board.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <string>

#include "carrier.h"

class Terminal {
public:
    Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
        if (master_ < 0 || grantpt(master_) || unlockpt(master_)) fail("no pseudo-terminal can be opened");
        address_ = ptsname(master_);
        // Held open: a terminal whose last program has closed it gives errors instead of waiting for the next one.
        const int slave = open(address_.c_str(), O_RDWR | O_NOCTTY);
        termios settings;
        if (slave < 0 || tcgetattr(slave, &settings)) fail("no terminal can be opened at " + address_);
        cfmakeraw(&settings);
        tcsetattr(slave, TCSANOW, &settings);
    }

    const std::string& address() const { return address_; }
    int descriptor() const { return master_; }

private:
    const int master_;  // it does not block
    std::string address_;
};
