"""Boxes to training targets and network outputs back to boxes. Run as a program it tests that one undoes the other.

All boxes are [left, top, right, bottom] in pixels of the network's input, as pixel edges.
"""
import numpy as np

STRIDE = 4  # pixels of the input per cell of the outputs
_SPREAD = 0.54 / 6  # standard deviation of a centre's bump as a share of the box (Liu et al. 2019, arXiv:1909.00700)


def iou(a, b):
    """[n, m] intersections over unions of two box arrays."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:4], b[None, :, 2:4])
    common = np.clip(high - low, 0, None).prod(-1)
    area = [(x[:, 2:4] - x[:, :2]).prod(-1) for x in (a, b)]
    return common / np.maximum(area[0][:, None] + area[1][None] - common, 1e-9)


def encode(boxes, classes, ignored, ignored_classes, count, height, width):
    """Targets of one picture of `height` x `width` pixels and `count` classes.

    heat f32[count, h, w]: 1 in the cell of a centre, falling off around it; weight f32[count, h, w]: 0 where nothing
    is to be learnt; distances f32[4, h, w] in cells; share f32[h, w]: how much a cell's distances count, 0 = not.
    """
    h, w = height // STRIDE, width // STRIDE
    heat = np.zeros((count, h, w), np.float32)
    weight = np.ones((count, h, w), np.float32)
    distances = np.zeros((4, h, w), np.float32)
    share = np.zeros((h, w), np.float32)
    for box, kind in zip(np.asarray(ignored) / STRIDE, ignored_classes):
        x0, y0 = np.floor(box[:2]).astype(int)
        x1, y1 = np.ceil(box[2:]).astype(int)
        weight[int(kind), y0:y1, x0:x1] = 0
    # Small boxes last: where two overlap the cells are the smaller one's, but for the centre of the larger one.
    centres = []
    cells = np.asarray(boxes, np.float64).reshape(-1, 4) / STRIDE
    for i in np.argsort(-(cells[:, 2:] - cells[:, :2]).prod(1), kind="stable"):
        box, kind = cells[i], int(classes[i])
        size = np.maximum(box[2:] - box[:2], 1e-3)
        column, row = np.minimum(((box[:2] + box[2:]) / 2).astype(int), [w - 1, h - 1])
        sigma = np.maximum(size * _SPREAD, 0.25)
        reach = np.ceil(3 * sigma).astype(int)
        x = np.arange(max(0, column - reach[0]), min(w, column + reach[0] + 1))
        y = np.arange(max(0, row - reach[1]), min(h, row + reach[1] + 1))
        bump = np.exp(-((x - column) / sigma[0]) ** 2 / 2)[None] * np.exp(-((y - row) / sigma[1]) ** 2 / 2)[:, None]
        window = (slice(y[0], y[-1] + 1), slice(x[0], x[-1] + 1))
        heat[kind][window] = np.maximum(heat[kind][window], bump)
        weight[kind][window] = np.where(bump > 0.05, 1, weight[kind][window])
        near = bump > 0.1
        sides = np.broadcast_arrays(x[None] + 0.5 - box[0], y[:, None] + 0.5 - box[1],
                                    box[2] - x[None] - 0.5, box[3] - y[:, None] - 0.5)
        for side, value in zip(distances, sides):
            side[window] = np.where(near, np.maximum(value, 0), side[window])
        # Each box counts by the logarithm of its area, however many cells it has.
        part = np.log(size.prod() + 1) / bump[near].sum()
        share[window] = np.where(near, bump * part, share[window])
        sides = [column + 0.5 - box[0], row + 0.5 - box[1], box[2] - column - 0.5, box[3] - row - 0.5]
        centres.append((row, column, np.maximum(sides, 0), part))
    for row, column, sides, part in centres:
        distances[:, row, column], share[row, column] = sides, part
    return heat, weight, distances, share


def decode(heat, distances, score_min, nms_iou, objects_max=64):
    """Boxes of one picture: rows [left, top, right, bottom, score, class], best first.

    A cell is a peak of its class when no heat of its 3x3 neighbourhood is greater and it reaches `score_min`. Of boxes
    of one class that overlap by more than `nms_iou` the best stays.
    """
    count, h, w = heat.shape
    padded = np.pad(heat, ((0, 0), (1, 1), (1, 1)), constant_values=-1)
    highest = np.max([padded[:, y:y + h, x:x + w] for y in range(3) for x in range(3)], axis=0)
    kind, row, column = np.nonzero((heat >= highest) & (heat >= score_min))
    left, top, right, bottom = distances[:, row, column]
    rows = np.stack([column + 0.5 - left, row + 0.5 - top, column + 0.5 + right, row + 0.5 + bottom], 1) * STRIDE
    rows = np.concatenate([rows, heat[kind, row, column][:, None], kind[:, None]], 1)
    rows = rows[np.argsort(-rows[:, 4], kind="stable")]
    overlaps = (iou(rows, rows) > nms_iou) & (rows[:, None, 5] == rows[None, :, 5])
    kept = []
    for i in range(len(rows)):
        if not overlaps[i, kept].any():
            kept.append(i)
    return rows[kept[:objects_max]]


def _self_test():
    rng = np.random.default_rng(1)
    height, width, checked = 256, 416, 0
    for _ in range(200):
        boxes, classes = [], []
        for _ in range(rng.integers(0, 12)):
            low = rng.uniform(0, [width - 12, height - 12])
            box = np.array([*low, *np.minimum(low + np.exp(rng.uniform(2.1, 5.5, 2)), [width, height])])
            centres = [(np.add(b[:2], b[2:]) / 2 / STRIDE).astype(int) for b in boxes]
            centre = ((box[:2] + box[2:]) / 2 / STRIDE).astype(int)
            if all(np.abs(c - centre).max() > 1 for c in centres):  # others share a peak by design
                boxes.append(box)
                classes.append(int(rng.integers(2)))
        heat, weight, distances, share = encode(boxes, classes, [], [], 2, height, width)
        assert (weight == 1).all() and ((share > 0) <= (heat.max(0) > 0.1)).all()
        found = decode(heat, distances, 0.999, 1.0)
        assert len(found) == len(boxes), (len(found), len(boxes))
        for box, kind in zip(boxes, classes):
            errors = np.abs(found[found[:, 5] == kind, :4] - box).max(1)
            assert (errors < 1e-3).sum() == 1, (box, found)
            checked += 1
    assert checked > 500

    # Ignored objects blank their class only, and give way to objects that count.
    heat, weight, _, _ = encode([[40, 40, 80, 80]], [0], [[32, 32, 120, 120]], [0], 2, 128, 128)
    assert weight[0, 15, 15] == 1 and weight[0, 25, 25] == 0 and weight[1].all() and heat[0, 15, 15] == 1

    # Overlap: the better box stays, another class and a neighbour beside it too.
    heat = np.zeros((2, 8, 8), np.float32)
    distances = np.full((4, 8, 8), 2.0, np.float32)
    heat[0, 2, 2], heat[0, 2, 4], heat[1, 2, 2], heat[0, 6, 6] = 0.9, 0.8, 0.7, 0.2
    assert [tuple(r[4:].round(1)) for r in decode(heat, distances, 0.3, 0.3)] == [(0.9, 0), (0.7, 1)]
    assert len(decode(heat, distances, 0.1, 0.5)) == 4
    assert len(decode(heat, distances, 0.1, 0.5, objects_max=2)) == 2
    assert decode(heat, distances, 0.95, 0.5).shape == (0, 6)
    print(f"targets: {checked} boxes encoded and found again")


if __name__ == "__main__":
    _self_test()
