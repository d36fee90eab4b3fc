"""The dense parts of two LiDAR detectors, behind the scatter of pillars: a bird's-eye image in, maps out."""
import torch
from torch import nn

from layers import unit


class Blocks(nn.Module):
    """Backbone that both take from SECOND (Yan et al. 2018): each block halves the image, all are brought to one size."""

    def __init__(self, inputs, sizes, strides):
        super().__init__()
        self.blocks, self.ups = nn.ModuleList(), nn.ModuleList()
        for (outputs, depth), up in zip(sizes, strides):
            self.blocks.append(nn.Sequential(unit(inputs, outputs, 3, 2, eps=1e-3),
                                             *(unit(outputs, outputs, 3, eps=1e-3) for _ in range(depth))))
            inputs = outputs
            resize = (nn.ConvTranspose2d(outputs, 128, int(up), int(up), bias=False) if up >= 1 else
                      nn.Conv2d(outputs, 128, int(1 / up), int(1 / up), bias=False))
            self.ups.append(nn.Sequential(resize, nn.BatchNorm2d(128, eps=1e-3), nn.ReLU()))

    def forward(self, x):
        parts = []
        for block, up in zip(self.blocks, self.ups):
            x = block(x)
            parts.append(up(x))
        return torch.cat(parts, 1)


class PointPillars(nn.Module):
    """Lang et al. 2018 (arXiv:1812.05784), KITTI: 496 x 432 pillars, 3 classes, 2 anchors each."""

    def __init__(self):
        super().__init__()
        self.backbone = Blocks(64, ((64, 3), (128, 5), (256, 5)), (1, 2, 4))
        self.heads = nn.ModuleList(nn.Conv2d(384, n, 1) for n in (18, 42, 12))

    def forward(self, x):
        x = self.backbone(x)
        return tuple(head(x) for head in self.heads)


class CenterPoint(nn.Module):
    """Yin et al. 2020 (arXiv:2006.11275), nuScenes with pillars of 0.2 m: 512 x 512, six groups of classes, each with a
    heat map and five maps of geometry."""

    def __init__(self):
        super().__init__()
        self.backbone = Blocks(64, ((64, 3), (128, 5), (256, 5)), (0.5, 1, 2))
        self.shared = unit(384, 64, 3)
        self.heads = nn.ModuleList(
            nn.ModuleList(nn.Sequential(unit(64, 64, 3), nn.Conv2d(64, outputs, 3, padding=1))
                          for outputs in (2, 1, 3, 2, 2, classes)) for classes in (1, 2, 2, 1, 2, 2))

    def forward(self, x):
        x = self.shared(self.backbone(x))
        return tuple(torch.cat([head(x) for head in group[:5]], 1) if maps else group[5](x)
                     for group in self.heads for maps in (False, True))
