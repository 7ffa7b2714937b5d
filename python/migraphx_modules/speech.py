# SPDX-License-Identifier: MIT
"""Sound as models of speech take it: Whisper's log-mel spectrogram, in numpy.

    samples (16 kHz, -1 to 1) -> 30 seconds of them -> |spectrum|^2 of 400 samples every 160, Hann's window
                              -> a filter bank even in mels -> log10, at most 8 below the largest, (x + 4) / 4

The folder's preprocessor_config.json says other sizes where it has them.
"""
import numpy as np

__all__ = ["features"]

USUAL = {"feature_size": 80, "sampling_rate": 16000, "hop_length": 160, "n_fft": 400, "chunk_length": 30}


def _hertz_of(mel):
    """Slaney's scale: even up to 1 kHz, 15 mels; above, 27 mels for every factor of 6.4."""
    mel = np.asarray(mel, np.float64)
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * (np.log(6.4) / 27)))


def _mel_of(hertz):
    hertz = np.asarray(hertz, np.float64)
    return np.where(hertz < 1000, hertz * 3 / 200, 15 + np.log(np.maximum(hertz, 1) / 1000) * (27 / np.log(6.4)))


def filters(count, size, rate):
    """{size / 2 + 1, count}: triangles between neighbouring corners, each of area 1."""
    bins = np.linspace(0, rate / 2, size // 2 + 1)
    corners = _hertz_of(np.linspace(_mel_of(0), _mel_of(rate / 2), count + 2))
    up = (bins[:, None] - corners[:-2]) / (corners[1:-1] - corners[:-2])
    down = (corners[2:] - bins[:, None]) / (corners[2:] - corners[1:-1])
    return np.maximum(0, np.minimum(up, down)) * (2 / (corners[2:] - corners[:-2]))


def features(samples, settings=None):
    """{1, mels, frames} of float32 for samples of one channel; those too many are an error, too few are silence."""
    s = {**USUAL, **{k: int(v) for k, v in (settings or {}).items() if k in USUAL and isinstance(v, (int, float)) and 0 < v < 10**6}}
    samples = np.asarray(samples)
    if samples.ndim != 1 or samples.dtype.kind not in "fiu":
        raise ValueError(f"sound is an array of samples of one channel, not one of {samples.dtype} and shape {samples.shape}")
    if samples.dtype.kind in "iu":
        samples = samples / float(np.iinfo(samples.dtype).max)
    whole = s["chunk_length"] * s["sampling_rate"]
    if samples.size > whole:
        raise ValueError(f"{samples.size / s['sampling_rate']:.1f} s of sound at {s['sampling_rate']} Hz, where the model hears "
                         f"{s['chunk_length']}: cut it where nobody speaks")
    size, hop = s["n_fft"], s["hop_length"]
    x = np.zeros(whole)
    x[:samples.size] = samples
    x = np.pad(x, size // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(x, size)[::hop][:whole // hop]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    power = np.abs(np.fft.rfft(frames * window, axis=-1)) ** 2
    mels = np.log10(np.maximum(power @ filters(s["feature_size"], size, s["sampling_rate"]), 1e-10))
    mels = (np.maximum(mels, mels.max() - 8) + 4) / 4
    return np.ascontiguousarray(mels.T[None], np.float32)
