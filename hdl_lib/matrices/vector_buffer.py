"""The beats of a vector, kept for several passes over them: one for each part of a matrix's rows."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, memory

from hdl_lib.blocks import delayed


def vector_latency(synapse_fold: int, neuron_fold: int) -> int:
    """Return the cycles from a step to its inputs: one more if they come from a memory with a register behind it."""
    return 3 if synapse_fold > 1 and neuron_fold > 1 else 2


def vector_inputs(
    m: Module, beat: data.ArrayLayout, payload: Value, step: Value, consumes: Value, synapse: Signal,
    folds: tuple[int, int],
) -> list[Signal]:
    """Return the lanes of the step's input beat, :func:`vector_latency` cycles after the step.

    ``payload``: a beat that a step with ``consumes`` takes, the others reuse those of the vector's first pass;
    ``synapse``: the step's beat; ``folds``: the beats of a vector, and the passes over them.
    """
    synapse_fold, neuron_fold = folds
    arrived = Signal(beat, reset_less=True)
    used = Signal(beat, reset_less=True)
    if neuron_fold > 1 and synapse_fold == 1:
        # The register that receives the only beat of a pixel is the buffer. While the next one is awaited it may
        # take anything, so that its enable, which goes to every bit, is a register.
        with m.If(consumes):
            m.d.sync += arrived.eq(payload)
    else:
        m.d.sync += arrived.eq(payload)
    if neuron_fold > 1 and synapse_fold > 1:
        # A beat that arrives at t is written at t + 1 and first read at t + synapse_fold or later, so that a read
        # never meets the write of its own word, and the buffer is only overwritten a pixel later.
        # The memory's read register is written out: synthesis takes "no read meets a write" for such ones only.
        bits = len(arrived.as_value())
        m.submodules.replay = replay = memory.Memory(
            shape=bits, depth=synapse_fold, init=[], attrs={"no_rw_check": 1}
        )
        write = replay.write_port()
        read = replay.read_port(domain="comb")
        read_data, replayed, waiting = (
            Signal(bits, name=name, reset_less=True) for name in ("replay_data", "replayed", "waiting")
        )
        m.d.comb += [
            write.en.eq(delayed(m, "replay_write", step & consumes, 1)),
            write.addr.eq(delayed(m, "replay_address", synapse, 1, reset=False)),
            write.data.eq(arrived),
            read.addr.eq(synapse),
        ]
        fresh = delayed(m, "fresh", consumes, 2, reset=False)
        m.d.sync += [read_data.eq(read.data), replayed.eq(read_data), waiting.eq(arrived)]
        m.d.sync += used.eq(Mux(fresh, waiting, replayed))
    else:
        m.d.sync += used.eq(arrived)
    return [used[s] for s in range(beat.length)]
