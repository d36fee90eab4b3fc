"""Trains the camera network on drives made by make_drives.py and exports it.

    python3 tools/train/train.py --drives drives --out run

Steps are a function of the seed and their number; RUN/checkpoint.pt is written now and then, and the same command goes
on from there. The result is RUN/sim_camera.onnx, from the running mean of the weights, with its two
contracts; copy the three into configs/models.
"""
import argparse
import copy
import glob
import math
import os
import time

import numpy as np
import torch
import yaml
from torch.nn import functional as F

import drives
import export
import targets
from make_drives import RIG
from network import Network

# (height, width): full, lite and what lies between; one set of weights serves them all.
SIZES = [(256, 416), (160, 288), (192, 320), (224, 352)]
SIZE_ODDS = [0.45, 0.3, 0.15, 0.1]
LEAST_HEIGHT = 5.0  # pixels of the network's input: what is smaller is ignored


def pick(rng, picture, rows, height, width):
    """One augmented sample: a window of the picture at the network's size, its boxes and the ignored ones."""
    full_height, full_width = picture.shape[:2]
    # A window of 0.5 to 1.15 of the picture, aspect within 15 %; what lies outside of the picture is grey.
    scale = math.exp(rng.uniform(math.log(0.5), math.log(1.15))) if rng.random() < 0.7 else 1.0
    aspect = math.exp(rng.uniform(-0.14, 0.14)) if rng.random() < 0.7 else 1.0
    window = np.array([full_width * scale * math.sqrt(aspect), full_height * scale / math.sqrt(aspect)])
    room = np.array([full_width, full_height]) - window
    start = np.where(room >= 0, rng.uniform(np.minimum(room, 0), np.maximum(room, 0)), room / 2)
    x0, y0 = np.round(start).astype(int)
    x1, y1 = np.round(start + window).astype(int)
    canvas = np.full((y1 - y0, x1 - x0, 3), 114, np.uint8)
    u0, v0, u1, v1 = max(x0, 0), max(y0, 0), min(x1, full_width), min(y1, full_height)
    canvas[v0 - y0:v1 - y0, u0 - x0:u1 - x0] = picture[v0:v1, u0:u1]
    image = torch.from_numpy(canvas).permute(2, 0, 1)[None].float()
    image = F.interpolate(image, (height, width), mode="bilinear", align_corners=False)[0] / 255

    to_input = np.array([width / (x1 - x0), height / (y1 - y0)] * 2)
    boxes = (rows[:, :4] - [x0, y0, x0, y0]) * to_input
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    boxes = np.clip(boxes, 0, [width, height, width, height])
    size = boxes[:, 2:] - boxes[:, :2]
    inside = size.prod(1) / np.maximum(area, 1e-6)
    seen = (inside > 0.05) & (size.min(1) >= 1)
    counts = seen & (rows[:, 5] > 0) & (inside >= 0.25) & (size[:, 1] >= LEAST_HEIGHT)
    if rng.random() < 0.5:
        image = image.flip(2)
        boxes = boxes[:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [width, 0, width, 0]
    return colour(rng, image), boxes, rows[:, 4], counts, seen & ~counts


def colour(rng, image):
    """Gain, white balance, gamma, saturation, blur and noise."""
    gain = math.exp(rng.uniform(-0.35, 0.35)) * np.exp(rng.uniform(-0.12, 0.12, 3))
    image = (image * torch.from_numpy(gain.astype(np.float32))[:, None, None]).clamp(0, 1)
    image = image ** math.exp(rng.uniform(-0.35, 0.35))
    grey = image.mean(0, keepdim=True)
    image = grey + (image - grey) * rng.uniform(0.3, 1.5)
    if rng.random() < 0.2:
        image = image[torch.from_numpy(rng.permutation(3))]  # a blue car is a car
    if rng.random() < 0.15:
        image = F.avg_pool2d(image[None], 3, 1, 1, count_include_pad=False)[0]
    noise = torch.from_numpy(rng.standard_normal(image.shape, np.float32))
    return (image + noise * rng.uniform(0, 0.02)).clamp(0, 1)


def odds(labels):
    """How often a picture is taken: people are rare, pictures that show some come up to four times as often."""
    people = np.array([((rows[:, 4] == drives.PEDESTRIAN) & (rows[:, 5] > 0)).sum() for rows in labels])
    share = 1.0 + np.minimum(people, 3)
    return share / share.sum()


def batch_of(seed, step, size, pictures, labels, share):
    rng = np.random.default_rng([seed, step])
    height, width = SIZES[rng.choice(len(SIZES), p=SIZE_ODDS)]
    samples = []
    for i in rng.choice(len(pictures), size=size, p=share):
        image, boxes, classes, counts, ignored = pick(rng, pictures[i], labels[i], height, width)
        encoded = targets.encode(boxes[counts], classes[counts], boxes[ignored], classes[ignored],
                                 len(drives.CLASSES), height, width)
        samples.append((image, *map(torch.from_numpy, encoded)))
    return [torch.stack(column) for column in zip(*samples)]


class Steps(torch.utils.data.Dataset):
    """The batch of every step from `first` on: made ahead by a second process."""

    def __init__(self, first, last, seed, size, pictures, labels):
        self.first, self.last = first, last
        self.seed, self.rest = seed, (size, pictures, labels, odds(labels))

    def __len__(self):
        return self.last - self.first

    def __getitem__(self, i):
        return batch_of(self.seed, self.first + i, *self.rest)


def loss_of(network, image, heat, weight, distances, share):
    """Penalty-reduced focal loss of the heat, generalised IoU (arXiv:1902.09630) of the boxes."""
    logits, sides = network.raw(image)
    probability = torch.sigmoid(logits)
    centre = (heat == 1).float()
    found = -centre * (1 - probability) ** 2 * F.logsigmoid(logits)
    wrong = -(1 - centre) * (1 - heat) ** 4 * probability ** 2 * F.logsigmoid(-logits)
    # Each class by its own number of objects: people would hardly be heard among vehicles.
    objects = centre.sum((0, 2, 3)).clamp(min=4)
    heat_loss = ((weight * (found + wrong)).sum((0, 2, 3)) / objects).sum()

    chosen = share > 0
    if not chosen.any():
        return heat_loss, sides.sum() * 0
    share = share[chosen]
    true = distances.permute(0, 2, 3, 1)[chosen]
    raw = sides.permute(0, 2, 3, 1)[chosen]
    said = F.relu(raw)
    width, height = said[:, 0] + said[:, 2], said[:, 1] + said[:, 3]
    true_width, true_height = true[:, 0] + true[:, 2], true[:, 1] + true[:, 3]
    low, high = torch.minimum(said, true), torch.maximum(said, true)
    common = (low[:, 0] + low[:, 2]) * (low[:, 1] + low[:, 3])
    union = width * height + true_width * true_height - common
    hull = (high[:, 0] + high[:, 2]) * (high[:, 1] + high[:, 3])
    giou = common / union.clamp(min=1e-6) - (hull - union) / hull.clamp(min=1e-6)
    # Relative error as well, before the cut at zero: a distance that is cut would learn nothing.
    size = torch.stack([true_width, true_height, true_width, true_height], 1)
    relative = ((raw - true).abs() / (size + 1)).mean(1)
    return heat_loss, (share * (1 - giou + relative)).sum() / share.sum()


def load_drives(folder):
    with open(RIG, encoding="utf-8") as file:
        rig = yaml.safe_load(file)
    pictures, labels = [], []
    for path in sorted(glob.glob(os.path.join(folder, "*.mcap"))):
        some, rows = drives.load(path, rig)
        pictures += list(some)
        labels += rows
    if not pictures:
        raise SystemExit(f"train.py: no drives in {folder}; make them with make_drives.py")
    return pictures, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drives", required=True, help="OUT of make_drives.py")
    parser.add_argument("--out", required=True, help="folder for checkpoint and result")
    parser.add_argument("--steps", type=int, default=3600)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=4e-3, help="highest learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    os.makedirs(options.out, exist_ok=True)
    pictures, labels = load_drives(os.path.join(options.drives, "train"))
    print(f"{len(pictures)} pictures, {sum(int(rows[:, 5].sum()) for rows in labels)} objects that count", flush=True)

    network = Network(len(drives.CLASSES)).to(memory_format=torch.channels_last).train()
    mean = copy.deepcopy(network)
    decayed = [p for p in network.parameters() if p.dim() > 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.02},
                                   {"params": [p for p in network.parameters() if p.dim() == 1], "weight_decay": 0}])
    checkpoint = os.path.join(options.out, "checkpoint.pt")
    origin = [options.steps, options.batch, options.rate, options.seed, len(pictures)]
    first, spent = 0, 0.0
    if os.path.exists(checkpoint):
        stored = torch.load(checkpoint)
        if stored["from"] != origin:
            raise SystemExit(f"train.py: {checkpoint} comes from other options or drives; use another --out")
        network.load_state_dict(stored["network"])
        mean.load_state_dict(stored["mean"])
        optimizer.load_state_dict(stored["optimizer"])
        first, spent = stored["step"], stored["spent"]

    begin, sums = time.time() - spent, np.zeros(2)
    steps = Steps(first, options.steps, options.seed, options.batch, pictures, labels)
    for step, batch in enumerate(torch.utils.data.DataLoader(steps, batch_size=None, num_workers=1, prefetch_factor=4),
                                 first):
        warm = min(1.0, (step + 1) / 150)
        for group in optimizer.param_groups:
            group["lr"] = options.rate * warm * 0.5 * (1 + math.cos(math.pi * step / options.steps)) + 1e-5
        image, *wanted = batch
        heat_loss, box_loss = loss_of(network, image.contiguous(memory_format=torch.channels_last), *wanted)
        optimizer.zero_grad(set_to_none=True)
        (heat_loss + 2 * box_loss).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 10)
        optimizer.step()
        keep = min(0.998, (step + 1) / (step + 20))
        with torch.no_grad():
            for slow, fast in zip(mean.state_dict().values(), network.state_dict().values()):
                slow.mul_(keep).add_(fast, alpha=1 - keep) if slow.is_floating_point() else slow.copy_(fast)
        sums += [heat_loss.item(), box_loss.item()]
        if (step + 1) % 50 == 0:
            print(f"step {step + 1}/{options.steps}  heat {sums[0] / 50:.3f}  box {sums[1] / 50:.3f}  "
                  f"{time.time() - begin:.0f} s", flush=True)
            sums[:] = 0
        if (step + 1) % 100 == 0 or step + 1 == options.steps:
            torch.save({"network": network.state_dict(), "mean": mean.state_dict(), "step": step + 1,
                        "optimizer": optimizer.state_dict(), "spent": time.time() - begin,
                        "from": origin}, checkpoint + ".part")
            os.replace(checkpoint + ".part", checkpoint)
    export.write(mean, options.out)


if __name__ == "__main__":
    main()
