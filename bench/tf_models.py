# SPDX-License-Identifier: MIT
"""Models of keras.layers with random weights for tf.py: transformers, a detector, taggers, and models drawn at random.

Each function gives a Keras model; what its inputs are follows from their types: whole numbers are tokens, the rest an
image or features."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

TOKENS = 1000  # of a vocabulary


def encoder(x, heads, width, mask=None):
    """A block of BERT: attention, then two products, each added and normalised."""
    y = L.MultiHeadAttention(heads, x.shape[-1] // heads)(x, x, attention_mask=mask)
    x = L.LayerNormalization(epsilon=1e-12)(x + y)
    y = L.Dense(x.shape[-1])(L.Dense(width, activation="gelu")(x))
    return L.LayerNormalization(epsilon=1e-12)(x + y)


class Positions(L.Layer):
    def __init__(self, length, width):
        super().__init__()
        self.table = self.add_weight(shape=(length, width), name="table")

    def call(self, x):
        return x + self.table[:x.shape[1]]


def bert():
    """Two blocks of MiniLM's size over 128 tokens, with a mask of what is padding."""
    tokens = L.Input((128,), dtype="int32", name="tokens")
    mask = L.Lambda(lambda t: tf.cast(t[:, None, :] > 0, tf.bool))(tokens)
    x = L.LayerNormalization(epsilon=1e-12)(Positions(128, 384)(L.Embedding(TOKENS, 384)(tokens)))
    for _ in range(2):
        x = encoder(x, 12, 1536, mask)
    return keras.Model(tokens, L.Dense(384, activation="tanh")(x[:, 0]))


def vit():
    """Patches of an image through two blocks."""
    image = L.Input((96, 96, 3), name="image")
    x = L.Reshape((36, 256))(L.Conv2D(256, 16, 16)(image))
    x = Positions(36, 256)(x)
    for _ in range(2):
        x = encoder(x, 4, 512)
    return keras.Model(image, L.Dense(100)(L.GlobalAveragePooling1D()(x)))


class Boxes(L.Layer):
    """What a detector's heads say as boxes: anchors moved, the best kept, by TensorFlow's own suppression."""
    def __init__(self, anchors):
        super().__init__()
        self.anchors = tf.constant(anchors)

    def call(self, places, scores):
        middle = places[..., :2] * 0.1 * self.anchors[:, 2:] + self.anchors[:, :2]
        size = tf.exp(places[..., 2:] * 0.2) * self.anchors[:, 2:]
        boxes = tf.concat([middle - size / 2, middle + size / 2], -1)
        found = tf.image.combined_non_max_suppression(boxes[:, :, None], tf.sigmoid(scores), 20, 50, 0.5, 0.3)
        return found.nmsed_boxes, found.nmsed_scores, found.nmsed_classes, found.valid_detections


def ssd():
    """A small backbone, two heads of two scales, anchors and suppression."""
    image = L.Input((160, 160, 3), name="image")
    x, places, scores, anchors = image, [], [], []
    for k, width in enumerate((32, 64, 128, 128, 128)):
        x = L.ReLU(6)(L.BatchNormalization()(L.Conv2D(width, 3, 2 if k < 4 else 1, "same", use_bias=False)(x)))
        x = L.ReLU(6)(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same", use_bias=False)(x)))
        if k >= 3:
            n = x.shape[1]
            places.append(L.Reshape((n * n * 3, 4))(L.Conv2D(12, 3, padding="same")(x)))
            wide = keras.initializers.RandomNormal(0, 0.05)  # scores that are not all alike
            scores.append(L.Reshape((n * n * 3, 10))(L.Conv2D(30, 3, padding="same", kernel_initializer=wide)(x)))
            grid = (np.arange(n) + 0.5) / n
            anchors += [(y, z, s, s) for y in grid for z in grid for s in (0.1, 0.2, 0.4)]
    made = Boxes(np.array(anchors, np.float32))(L.Concatenate(1)(places), L.Concatenate(1)(scores))
    return keras.Model(image, made)


def tagger():
    """Two bidirectional recurrent layers over 48 tokens."""
    tokens = L.Input((48,), dtype="int32", name="tokens")
    x = L.Embedding(TOKENS, 128)(tokens)
    x = L.Bidirectional(L.LSTM(128, return_sequences=True))(x)
    x = L.Bidirectional(L.GRU(64, return_sequences=True))(x)
    return keras.Model(tokens, L.Dense(17, activation="softmax")(x))


SMALL = {"Bert": bert, "Vit": vit, "Ssd": ssd, "Tagger": tagger}


# --- drawn at random ---

def some_image_layer(r, x):
    """One of the layers that images go through, with what it takes drawn too."""
    width, kernel, act = int(r.choice([8, 16, 24, 48])), int(r.choice([1, 3, 5])), r.choice(["relu", "elu", "silu", "gelu", "hard_sigmoid", "leaky_relu", "softplus", "tanh"])
    kinds = {
        "conv": lambda: L.Conv2D(width, kernel, int(r.choice([1, 2])), "same", activation=act)(x),
        "grouped": lambda: L.Conv2D(width, kernel, 1, "same", groups=4 if x.shape[-1] % 4 == 0 else 1)(x),
        "dilated": lambda: L.Conv2D(width, 3, 1, "same", dilation_rate=2)(x),
        "depthwise": lambda: L.DepthwiseConv2D(kernel, padding="same", depth_multiplier=int(r.choice([1, 2])))(x),
        "separable": lambda: L.SeparableConv2D(width, kernel, padding="same", activation=act)(x),
        "transposed": lambda: L.Conv2DTranspose(width, 3, 2, "same")(x) if x.shape[1] < 40 else x,
        "batch": lambda: L.Activation(act)(L.BatchNormalization()(x)),
        "layer": lambda: L.LayerNormalization()(x),
        "group": lambda: L.GroupNormalization(4 if x.shape[-1] % 4 == 0 else 1)(x),
        "max": lambda: L.MaxPooling2D(2, padding="same")(x) if x.shape[1] > 6 else x,
        "average": lambda: L.AveragePooling2D(3, 2, "same")(x) if x.shape[1] > 6 else x,
        "up": lambda: L.UpSampling2D(2, interpolation=r.choice(["nearest", "bilinear"]))(x) if x.shape[1] < 30 else x,
        "pad": lambda: L.Cropping2D(1)(L.ZeroPadding2D(2)(x)),
        "squeeze": lambda: L.Multiply()([x, L.Dense(x.shape[-1], activation="sigmoid")(L.GlobalAveragePooling2D(keepdims=True)(x))]),
        "branch": lambda: L.Concatenate()([L.Conv2D(8, 1, padding="same")(x), L.Conv2D(8, 3, padding="same", activation=act)(x)]),
        "skip": lambda: L.Add()([x, L.Conv2D(x.shape[-1], 3, padding="same", activation=act)(x)]),
        "prelu": lambda: L.PReLU(shared_axes=[1, 2])(x),
    }
    return kinds[r.choice(sorted(kinds))]()


def some_row_layer(r, x):
    """The same for rows of tokens or features."""
    width = int(r.choice([16, 32, 64]))
    kinds = {
        "lstm": lambda: L.LSTM(width, return_sequences=True, go_backwards=bool(r.choice([0, 1])))(x),
        "gru": lambda: L.GRU(width, return_sequences=True, reset_after=bool(r.choice([0, 1])))(x),
        "rnn": lambda: L.Bidirectional(L.SimpleRNN(width, return_sequences=True), merge_mode=r.choice(["sum", "concat"]))(x),
        "conv": lambda: L.Conv1D(width, 3, padding="causal", activation="relu")(x),
        "pool": lambda: L.MaxPooling1D(2, padding="same")(x) if x.shape[1] > 8 else x,
        "attention": lambda: L.MultiHeadAttention(2, 16)(x, x),
        "dense": lambda: L.Dense(width, activation="gelu")(x),
        "layer": lambda: L.LayerNormalization()(x),
        "unit": lambda: L.UnitNormalization()(x),
        "repeat": lambda: L.UpSampling1D(2)(x) if x.shape[1] < 40 else x,
    }
    return kinds[r.choice(sorted(kinds))]()


def drawn(seed):
    """A model that nobody chose: of images or of rows, three to nine layers."""
    r = np.random.default_rng(seed)
    image = r.random() < 0.6
    size, width = int(r.choice([24, 33, 48])), int(r.choice([3, 8, 16]))
    start = x = L.Input((size, size, width) if image else (size, width), name="x")
    for _ in range(int(r.integers(3, 10))):
        x = some_image_layer(r, x) if image else some_row_layer(r, x)
    x = L.Flatten()(x) if r.random() < 0.3 else (L.GlobalMaxPooling2D if image else L.GlobalAveragePooling1D)()(x)
    return keras.Model(start, L.Dense(int(r.choice([5, 10])), activation="softmax")(x))
