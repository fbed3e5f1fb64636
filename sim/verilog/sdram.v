// A single data rate SDRAM that ends the simulation when a command comes too early, a refresh too late, or anything
// that a real one would not answer as its reader expects. For simulation only; Verilog-2005 but for $fatal.
//
// Times are in picoseconds, CLOCK_PS is a cycle. It has single words (bursts of length 1), CAS cycles after their
// command, and pages that are closed by PRECHARGE alone. The memory holds PAGES pages, counted from row 0 of bank 0
// on through all rows of a bank; FILE is their contents in hexadecimal.
module hwflow_sdram #(
    parameter BANKS = 4, ROWS = 8192, COLUMNS = 512, WIDTH = 16, PAGES = 1, CAS = 2, CLOCK_PS = 10000,
    parameter T_RCD = 20000, T_RP = 20000, T_RAS = 45000, T_RC = 70000, T_WR = 20000, T_RFC = 70000,
    parameter T_REFRESH = 7812500, T_POWER_UP = 200000000, INITIAL_REFRESHES = 8, MODE_CYCLES = 2,
    parameter FILE = ""
) (
    input clk, cke, cs_n, ras_n, cas_n, we_n,
    input [$clog2(BANKS)-1:0] ba,
    input [($clog2(ROWS) > 11 ? $clog2(ROWS) : 11)-1:0] a,
    input [WIDTH/8-1:0] dqm,
    input [WIDTH-1:0] dq_i,
    input dq_oe,
    output reg [WIDTH-1:0] dq_o
);
    localparam NOP = 3'b111, ACTIVE = 3'b011, READ = 3'b101, WRITE = 3'b100, PRECHARGE = 3'b010, REFRESH = 3'b001,
        MODE = 3'b000;

    reg [WIDTH-1:0] memory [0:PAGES*COLUMNS-1];
    initial if (FILE != "") $readmemh(FILE, memory);

    // The cycle of each bank's last command of a kind; far enough in the past at first.
    reg signed [63:0] now, refreshed, mode_set, activated [0:BANKS-1], precharged [0:BANKS-1], written [0:BANKS-1];
    reg [BANKS-1:0] open;
    reg [31:0] row [0:BANKS-1];
    reg all_closed, ready;
    integer bank, refreshes, address;
    reg [WIDTH-1:0] pipe [0:3];
    reg [3:0] reading;
    initial begin
        now = 0; refreshed = -64'sd1000000; mode_set = -64'sd1000000; open = 0; all_closed = 0; ready = 0;
        refreshes = 0; reading = 0; dq_o = 0;
        for (bank = 0; bank < BANKS; bank = bank + 1) begin
            activated[bank] = -64'sd1000000; precharged[bank] = -64'sd1000000; written[bank] = -64'sd1000000;
            row[bank] = 0;
        end
    end

    function early(input signed [63:0] since, input integer least);
        early = (now - since) * CLOCK_PS < least;
    endfunction

    wire [2:0] command = cs_n || !cke ? NOP : {ras_n, cas_n, we_n};
    integer page;
    always @(posedge clk) begin
        now <= now + 1;
        reading <= {reading[2:0], 1'b0};
        pipe[1] <= pipe[0]; pipe[2] <= pipe[1]; pipe[3] <= pipe[2];
        if (CAS == 2) dq_o <= pipe[0]; else dq_o <= pipe[1];
        if (reading[CAS-1] && dq_oe) $fatal(1, "SDRAM: the pins of data must have one driver, not two");
        if (ready && (now - refreshed) * CLOCK_PS > T_REFRESH)
            $fatal(1, "SDRAM: a refresh must come every tREF, %0d ps, and is missing", T_REFRESH);
        if (command != NOP) begin
            if (now * CLOCK_PS < T_POWER_UP) $fatal(1, "SDRAM: the first command must come after %0d ps", T_POWER_UP);
            if (early(refreshed, T_RFC)) $fatal(1, "SDRAM: tRFC, %0d ps from a refresh, is violated", T_RFC);
            if (now - mode_set < MODE_CYCLES) $fatal(1, "SDRAM: tMRD, %0d cycles from the mode, is violated", MODE_CYCLES);
            if (!ready && (command == ACTIVE || command == READ || command == WRITE))
                $fatal(1, "SDRAM: it must be set up before it is used");
        end
        case (command)
            NOP: ;
            ACTIVE: begin
                if (open[ba]) $fatal(1, "SDRAM: a bank must be closed before another row of it is opened");
                if (early(precharged[ba], T_RP)) $fatal(1, "SDRAM: tRP, %0d ps from a precharge, is violated", T_RP);
                if (early(activated[ba], T_RC)) $fatal(1, "SDRAM: tRC, %0d ps from the row before, is violated", T_RC);
                open[ba] <= 1; row[ba] <= a; activated[ba] <= now;
            end
            READ, WRITE: begin
                if (!open[ba]) $fatal(1, "SDRAM: a row must be open where words are read or written");
                if (early(activated[ba], T_RCD)) $fatal(1, "SDRAM: tRCD, %0d ps from opening a row, is violated", T_RCD);
                if (a[10]) $fatal(1, "SDRAM: pages must be closed by PRECHARGE, not by a read or write");
                page = ba * ROWS + row[ba];
                address = page * COLUMNS + a[$clog2(COLUMNS)-1:0];
                if (page >= PAGES) $fatal(1, "SDRAM: page %0d must be one of the image's %0d", page, PAGES);
                if (dqm != 0) $fatal(1, "SDRAM: words must be whole, not masked");
                if (command == READ) begin
                    pipe[0] <= memory[address];
                    reading[0] <= 1;
                end else begin
                    if (!dq_oe) $fatal(1, "SDRAM: the pins of data must be driven where words are written");
                    memory[address] <= dq_i;
                    written[ba] <= now;
                end
            end
            PRECHARGE: begin
                for (bank = 0; bank < BANKS; bank = bank + 1) if (a[10] || bank == ba) begin
                    if (open[bank] && early(activated[bank], T_RAS))
                        $fatal(1, "SDRAM: tRAS, %0d ps from opening a row, is violated", T_RAS);
                    if (open[bank] && early(written[bank], T_WR))
                        $fatal(1, "SDRAM: tWR, %0d ps from a write, is violated", T_WR);
                    open[bank] <= 0; precharged[bank] <= now;
                end
                if (a[10]) all_closed <= 1;
            end
            REFRESH: begin
                if (open != 0 || !all_closed) $fatal(1, "SDRAM: all banks must be closed for a refresh");
                for (bank = 0; bank < BANKS; bank = bank + 1) begin
                    if (early(precharged[bank], T_RP)) $fatal(1, "SDRAM: tRP, %0d ps from a precharge, is violated", T_RP);
                    if (early(activated[bank], T_RC)) $fatal(1, "SDRAM: tRC, %0d ps from a row, is violated", T_RC);
                end
                refreshed <= now; refreshes <= refreshes + 1;
            end
            MODE: begin
                if (open != 0 || refreshes < INITIAL_REFRESHES)
                    $fatal(1, "SDRAM: the mode must be set after %0d refreshes, not %0d", INITIAL_REFRESHES, refreshes);
                if (a[2:0] != 0 || a[6:4] != CAS || !a[9])
                    $fatal(1, "SDRAM: the mode must be single words after %0d cycles, not %b", CAS, a);
                ready <= 1; mode_set <= now;
            end
            default: $fatal(1, "SDRAM: command %b is none of those that the memory has here", command);
        endcase
    end
endmodule
