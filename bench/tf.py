# SPDX-License-Identifier: MIT
"""Keras models with random weights: the results of both engines compared, then one thread of each in turn.

    tf.py --build BUILD [--seconds 6] [MODEL ...]

A model is one of keras.applications, one of tf_models.py (Bert, Vit, Ssd, Tagger), or Drawn7: the one that seed 7 draws.
Needs TensorFlow. Models are frozen with statistics and scales of their own, and saved as SavedModels; both must agree to
1e-4 of the largest result. Then runs alternate in one process bound to one CPU; the least CPU time of each counts."""
import argparse
import os
import sys
import tempfile
import time

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np  # noqa: E402

SIZES = {"InceptionV3": 299, "Xception": 299, "InceptionResNetV2": 299, "NASNetLarge": 331, "EfficientNetB1": 240, "EfficientNetB2": 260, "EfficientNetB3": 300}
MODELS = "ResNet50 MobileNetV2 EfficientNetB0 DenseNet121 InceptionV3 Xception NASNetMobile VGG16 ConvNeXtTiny MobileNetV3Small Bert Vit Ssd Tagger".split()


def build(name):
    import keras
    import tf_models
    if name.startswith("Drawn"):
        return tf_models.drawn(int(name[5:]))
    if name in tf_models.SMALL:
        return tf_models.SMALL[name]()
    return getattr(keras.applications, name)(weights=None, classifier_activation=None)


def value(r, given, name):
    """An input: tokens of whole numbers, images of bytes for the applications, else a few units."""
    size = SIZES.get(name, 224)
    lens = [1] + [size if d is None else d for d in given.shape[1:]]
    if "int" in str(given.dtype):
        return r.integers(0, 1000, lens).astype(np.int32)
    import keras
    return r.uniform(0, 255 if hasattr(keras.applications, name) else 1, lens).astype(np.float32)


def make(name):
    """The model, its frozen function and its inputs."""
    import keras
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2 as freeze
    keras.utils.set_random_seed(1)
    model = build(name)
    r = np.random.default_rng(0)
    for w in model.weights:  # statistics other than 0 and 1
        if "moving_mean" in w.path or "/beta" in w.path:
            w.assign(r.uniform(-.1, .1, w.shape))
        if "moving_variance" in w.path or "/gamma" in w.path:
            w.assign(r.uniform(.8, 1.2, w.shape))
    x = value(r, model.inputs[0], name)
    function = tf.function(lambda x: model(x, training=False))
    frozen = freeze(function.get_concrete_function(tf.TensorSpec(x.shape, x.dtype, name="x")))
    return model, frozen, x


def compiled(migraphx, path, **options):
    p = migraphx.parse_tf(path, **options)
    p.compile(migraphx.get_target("cpu"))
    return p


def error_of(got, want):
    """The largest difference by the largest result."""
    want = want.astype(np.float64)
    return np.abs(got.astype(np.float64) - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-30)


def compare(migraphx, model, frozen, x, folder):
    """A run of each engine, and the largest differences, frozen and saved."""
    import contextlib
    import io

    import tensorflow as tf
    path, saved = os.path.join(folder, "frozen.pb"), os.path.join(folder, "saved")
    with open(path, "wb") as file:
        file.write(frozen.graph.as_graph_def().SerializeToString())
    with contextlib.redirect_stdout(io.StringIO()):
        model.export(saved, verbose=False)
    given = tf.constant(x)
    want = [y.numpy() for y in tf.nest.flatten(frozen(given))]
    turned = migraphx.argument(np.ascontiguousarray(x.transpose(0, 3, 1, 2) if x.ndim == 4 else x))
    sizes = {model.inputs[0].name: list(turned.get_shape().lens())}  # a model of any size of image says none itself
    outputs = [y.name for y in frozen.outputs]
    errors, programs = [], [compiled(migraphx, path, output_names=outputs), compiled(migraphx, saved, map_input_dims=sizes)]
    for p in programs:
        got = [np.array(y) for y in p.run({p.get_parameter_names()[0]: turned})]
        used = list(range(len(want)))  # a SavedModel's results are sorted by name: by what they are near to here
        for y in got:
            near = [(error_of(y, want[k]), k) for k in used if y.shape == want[k].shape]
            errors.append(min(near)[0])
            used.remove(min(near)[1])
    name = programs[0].get_parameter_names()[0]
    half = len(errors) // 2
    errors = [max(errors[:half]), max(errors[half:])]
    return lambda: programs[0].run({name: turned}), lambda: [y.numpy() for y in tf.nest.flatten(frozen(given))], errors


def least(ours, theirs, seconds):
    """The least CPU milliseconds of each, runs in turn."""
    best = [float("inf")] * 2
    end = time.perf_counter() + seconds
    count = 0
    while count < 5 or time.perf_counter() < end:
        for i, run in enumerate((ours, theirs)):
            start = time.process_time()
            run()
            best[i] = min(best[i], time.process_time() - start)
        count += 1
    return [1e3 * b for b in best]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("models", nargs="*", default=[])
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.build, "python"))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    import migraphx
    print(f"{'model':18} {'frozen':>9} {'saved':>9} {'ours ms':>9} {'TF ms':>9} {'TF/ours':>8}")
    ratios, wrong = [], 0
    for name in args.models or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs, errors = compare(migraphx, *make(name), folder)
            best = least(ours, theirs, args.seconds)
        wrong += max(errors) > 1e-4
        ratios.append(best[1] / best[0])
        print(f"{name:18} {errors[0]:9.1e} {errors[1]:9.1e} {best[0]:9.1f} {best[1]:9.1f} {ratios[-1]:8.2f}", flush=True)
    print(f"{'geometric mean':18} {'':9} {'':9} {'':9} {'':9} {np.exp(np.mean(np.log(ratios))):8.2f}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
