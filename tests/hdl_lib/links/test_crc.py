"""The CRC against zlib's."""

import random
import zlib

from amaranth.sim import Simulator

from hdl_lib.links.crc import Crc32


def test_the_crc_is_zlibs():
    dut = Crc32()
    rng = random.Random(1)

    async def script(ctx):
        async def pulse(signal):
            ctx.set(signal, 1)
            await ctx.tick()
            ctx.set(signal, 0)

        for length in (0, 1, 2, 3, 4, 5, 60, 400):
            message = rng.randbytes(length)
            await pulse(dut.start)
            for byte in message:
                ctx.set(dut.data, byte)
                await pulse(dut.valid)
                for _ in range(rng.randrange(2)):
                    await ctx.tick()
            check = zlib.crc32(message)
            assert ctx.get(dut.crc) == check
            if length % 2:  # the CRC itself makes it whole
                for byte in check.to_bytes(4, "little"):
                    assert not ctx.get(dut.match_detected)
                    ctx.set(dut.data, byte)
                    await pulse(dut.valid)
                assert ctx.get(dut.match_detected)
            else:  # byte after byte is shifted out, whatever stands at the input
                for byte in check.to_bytes(4, "little"):
                    assert ctx.get(dut.crc) & 0xFF == byte
                    await pulse(dut.shift)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(script)
    simulator.run()
