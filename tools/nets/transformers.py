"""Detectors that end in a transformer: DETR and RT-DETR. The outputs are logits and boxes before the sigmoid."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from classifiers import ResNet50
from layers import ends_branch, unit


class Attention(nn.Module):
    """Vaswani et al. 2017 (arXiv:1706.03762): several heads, tokens [batch, count, channels]."""

    def __init__(self, width, heads=8):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = ends_branch(nn.Linear(width, width))

    def split(self, x):
        batch, count, width = x.shape
        return x.view(batch, count, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, query, key, value):
        q, k, v = self.split(self.q(query)), self.split(self.k(key)), self.split(self.v(value))
        weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


def feed(width, inner, act=nn.ReLU):
    return nn.Sequential(nn.Linear(width, inner), act(), ends_branch(nn.Linear(inner, width)))


def head(width, outputs, layers=3):
    """Layers of one width with ReLU between them, the last of `outputs`."""
    parts = []
    for _ in range(layers - 1):
        parts += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(width, outputs))


def waves(height, width, channels, temperature=10000.0):
    """Sines and cosines of row and column, [1, cells, channels]."""
    frequencies = temperature**-(torch.arange(channels // 4) / (channels // 4))
    rows, columns = torch.meshgrid(torch.arange(float(height)), torch.arange(float(width)), indexing="ij")
    parts = [f(axis.flatten()[:, None] * frequencies) for axis in (columns, rows) for f in (torch.sin, torch.cos)]
    return torch.cat(parts, 1).unsqueeze(0)


class EncoderLayer(nn.Module):
    """Normalised behind each shortcut; positions go into queries and keys only."""

    def __init__(self, width, inner, act=nn.ReLU):
        super().__init__()
        self.attention, self.feed = Attention(width), feed(width, inner, act)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x, position):
        placed = x + position
        x = self.norms[0](x + self.attention(placed, placed, x))
        return self.norms[1](x + self.feed(x))


class DecoderLayer(nn.Module):
    def __init__(self, width, inner, cross):
        super().__init__()
        self.attention, self.cross, self.feed = Attention(width), cross, feed(width, inner)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, queries, *memory):
        placed = x + queries
        x = self.norms[0](x + self.attention(placed, placed, x))
        x = self.norms[1](x + self.cross(x + queries, *memory))
        return self.norms[2](x + self.feed(x))


class Detr(nn.Module):
    """Carion et al. 2020 (arXiv:2005.12872), R50: 6 layers each, 256 channels, 100 queries, 91 classes and none."""

    def __init__(self, height=480, width=640, channels=256, queries=100):
        super().__init__()
        self.backbone, self.reduce = ResNet50(features=True), nn.Conv2d(2048, channels, 1)
        self.register_buffer("positions", waves(height // 32, width // 32, channels))
        self.encoder = nn.ModuleList(EncoderLayer(channels, 2048) for _ in range(6))
        self.decoder = nn.ModuleList(DecoderLayer(channels, 2048, Attention(channels)) for _ in range(6))
        self.queries = nn.Parameter(torch.zeros(1, queries, channels))
        self.norm = nn.LayerNorm(channels)
        self.classes, self.boxes = nn.Linear(channels, 92), head(channels, 4)

    def finish(self):
        nn.init.normal_(self.queries)

    def forward(self, x):
        memory = self.reduce(self.backbone(x)).flatten(2).transpose(1, 2)
        for layer in self.encoder:
            memory = layer(memory, self.positions)
        x = torch.zeros_like(self.queries)
        for layer in self.decoder:
            x = layer(x, self.queries, memory + self.positions, memory)
        x = self.norm(x)
        return self.classes(x), self.boxes(x)


class Basic(nn.Module):
    """Two 3x3 convolutions (He et al. 2015); the shortcut of a stride is an average pool and a 1x1 convolution: variant D
    of He et al. 2018 (arXiv:1812.01187)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(unit(inputs, outputs, 3, stride), unit(outputs, outputs, 3, act="none", branch=True))
        if stride > 1:
            self.shortcut = nn.Sequential(nn.AvgPool2d(2, 2), unit(inputs, outputs, act="none"))
        else:
            self.shortcut = unit(inputs, outputs, act="none") if inputs != outputs else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


class CrossStageSum(nn.Module):
    """CSP block of RT-DETR: three 3x3 convolutions (its parallel 1x1 ones merged into them) beside a 1x1 one, summed."""

    def __init__(self, inputs, outputs, inner):
        super().__init__()
        self.through = nn.Sequential(unit(inputs, inner, act="silu"), *(unit(inner, inner, 3, act="silu") for _ in range(3)))
        self.past, self.out = unit(inputs, inner, act="silu"), unit(inner, outputs, act="silu")

    def forward(self, x):
        return self.out(self.through(x) + self.past(x))


class Deformable(nn.Module):
    """Attention to a few points around a box on each level (Zhu et al. 2020, arXiv:2010.04159)."""

    POINTS = 4

    def __init__(self, width, extents, heads=8):
        super().__init__()
        self.heads, self.extents = heads, extents
        count = heads * len(extents) * self.POINTS
        self.offsets, self.weights = nn.Linear(width, 2 * count), nn.Linear(width, count)
        self.value, self.out = nn.Linear(width, width), ends_branch(nn.Linear(width, width))

    def forward(self, query, boxes, memory):
        batch, count, width = query.shape
        levels = len(self.extents)
        value = self.value(memory).view(batch, -1, self.heads, width // self.heads)
        offsets = self.offsets(query).view(batch, count, self.heads, levels, self.POINTS, 2)
        weights = self.weights(query).view(batch, count, self.heads, levels * self.POINTS).softmax(-1)
        boxes = boxes[:, :, None, None, None]
        grid = 2 * (boxes[..., :2] + offsets / self.POINTS * boxes[..., 2:] * 0.5) - 1
        sampled = []
        parts = value.split([height * width for height, width in self.extents], 1)
        for i, ((rows, columns), part) in enumerate(zip(self.extents, parts)):
            image = part.flatten(2).transpose(1, 2).reshape(batch * self.heads, width // self.heads, rows, columns)
            places = grid[:, :, :, i].transpose(1, 2).flatten(0, 1)
            sampled.append(F.grid_sample(image, places, mode="bilinear", padding_mode="zeros", align_corners=False))
        weights = weights.transpose(1, 2).reshape(batch * self.heads, 1, count, levels * self.POINTS)
        joined = (torch.cat(sampled, -1) * weights).sum(-1)  # [batch * heads, channels, count]
        return self.out(joined.view(batch, width, count).transpose(1, 2))


def inverse_sigmoid(x):
    x = x.clamp(1e-5, 1 - 1e-5)
    return torch.log(x / (1 - x))


class RtDetr(nn.Module):
    """Zhao et al. 2023 (arXiv:2304.08069), R18: ResNet-18 (variant D), one encoder layer on the coarsest level, a pyramid
    of CSP blocks, the 300 most promising cells as queries, three decoder layers that refine boxes."""

    def __init__(self, size=640, channels=256, classes=80, queries=300):
        super().__init__()
        self.count = queries
        self.stem = nn.Sequential(unit(3, 32, 3, 2), unit(32, 32, 3), unit(32, 64, 3))
        stages, inputs = [], 64
        for outputs in (64, 128, 256, 512):
            stages.append(nn.Sequential(Basic(inputs, outputs, 1 if outputs == 64 else 2), Basic(outputs, outputs, 1)))
            inputs = outputs
        self.stages = nn.ModuleList(stages)
        self.project = nn.ModuleList(unit(c, channels, act="none") for c in (128, 256, 512))
        self.register_buffer("positions", waves(size // 32, size // 32, channels))
        self.encoder = EncoderLayer(channels, 1024, nn.GELU)
        self.lateral = nn.ModuleList(unit(channels, channels, act="silu") for _ in range(2))
        self.strided = nn.ModuleList(unit(channels, channels, 3, 2, act="silu") for _ in range(2))
        self.down, self.up = (nn.ModuleList(CrossStageSum(2 * channels, channels, channels // 2) for _ in range(2))
                              for _ in range(2))
        self.levels = nn.ModuleList(unit(channels, channels, act="none") for _ in range(3))
        extents = [(size // s, size // s) for s in (8, 16, 32)]
        self.register_buffer("anchors", self.anchors_of(extents))
        self.select = nn.Sequential(nn.Linear(channels, channels), nn.LayerNorm(channels))
        self.scores, self.places = nn.Linear(channels, classes), head(channels, 4)
        self.position = nn.Sequential(nn.Linear(4, 2 * channels), nn.ReLU(), nn.Linear(2 * channels, channels))
        self.decoder = nn.ModuleList(DecoderLayer(channels, 1024, Deformable(channels, extents)) for _ in range(3))
        self.boxes = nn.ModuleList(head(channels, 4) for _ in range(3))
        for refine in self.boxes:
            ends_branch(refine[-1])
        self.classes = nn.Linear(channels, classes)

    @staticmethod
    def anchors_of(extents):
        """Boxes of one twentieth of the picture (and twice that per level) around the centre of every cell, before the
        sigmoid."""
        anchors = []
        for level, (height, width) in enumerate(extents):
            rows, columns = torch.meshgrid(torch.arange(float(height)), torch.arange(float(width)), indexing="ij")
            centres = torch.stack(((columns.flatten() + 0.5) / width, (rows.flatten() + 0.5) / height), 1)
            anchors.append(torch.cat((centres, torch.full_like(centres, 0.05 * 2.0**level)), 1))
        return inverse_sigmoid(torch.cat(anchors)).unsqueeze(0)

    def pyramid(self, x):
        x = F.max_pool2d(self.stem(x), 3, 2, 1)
        levels = []
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        fine, middle, coarse = (project(level) for project, level in zip(self.project, levels[1:]))
        batch, channels, height, width = coarse.shape
        tokens = self.encoder(coarse.flatten(2).transpose(1, 2), self.positions)
        coarse = tokens.transpose(1, 2).reshape(batch, channels, height, width)
        twice = lambda level: F.interpolate(level, scale_factor=2.0, mode="nearest")
        coarse = self.lateral[0](coarse)
        middle = self.lateral[1](self.down[0](torch.cat((twice(coarse), middle), 1)))
        out = [self.down[1](torch.cat((twice(middle), fine), 1))]
        for strided, up, level in zip(self.strided, self.up, (middle, coarse)):
            out.append(up(torch.cat((strided(out[-1]), level), 1)))
        return out

    def forward(self, x):
        levels = [project(level) for project, level in zip(self.levels, self.pyramid(x))]
        memory = torch.cat([level.flatten(2).transpose(1, 2) for level in levels], 1)
        candidates = self.select(memory)
        scores = self.scores(candidates)
        best = torch.topk(scores.max(-1)[0], self.count, dim=1)[1].unsqueeze(-1)
        x = candidates.gather(1, best.expand(-1, -1, candidates.shape[-1]))
        places = (self.places(candidates) + self.anchors).gather(1, best.expand(-1, -1, 4))
        boxes = places.sigmoid()
        for layer, refine in zip(self.decoder, self.boxes):
            x = layer(x, self.position(boxes), boxes.detach(), memory)
            places = refine(x) + inverse_sigmoid(boxes)
            boxes = places.sigmoid()
        return scores, self.classes(x), places
