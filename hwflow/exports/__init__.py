"""The verb ``export``: a design's core, as other projects take one in; and waveforms, as viewers do."""
