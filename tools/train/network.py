"""The camera network: an anchor-free centre head over a small depthwise backbone with a feature pyramid.

    image f32[1, 3, H, W], RGB in 0..1, H and W multiples of 32
      -> heatmap f32[1, classes, H/4, W/4] in 0..1, box f32[1, 4, H/4, W/4]: distances in cells, not negative

Centre points: Zhou et al. 2019 (arXiv:1904.07850); pyramid: Lin et al. 2017 (arXiv:1612.03144); depthwise separable
convolutions: Howard et al. 2017 (arXiv:1704.04861). Convolution, ReLU, sum, nearest upsampling and one sigmoid only.
"""
import copy

import torch
from torch import nn
from torch.nn import functional as F

BOX_SCALE = 16.0  # one unit of the last layer in cells: distances span three orders of magnitude


def conv(inputs, outputs, size=1, stride=1, groups=1):
    return [nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs),
            nn.ReLU()]


class Separable(nn.Module):
    """Depthwise 3x3, then 1x1; a shortcut where shapes allow it."""

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.layers = nn.Sequential(*conv(inputs, inputs, 3, stride, inputs), *conv(inputs, outputs))
        self.shortcut = inputs == outputs and stride == 1

    def forward(self, x):
        return x + self.layers(x) if self.shortcut else self.layers(x)


class Network(nn.Module):
    def __init__(self, classes=2, stem=16, widths=(32, 48, 96, 128), depths=(0, 2, 3, 1), pyramid=32):
        super().__init__()
        self.stem = nn.Sequential(*conv(3, stem, 3, 2))
        self.stages = nn.ModuleList()
        inputs = stem
        for width, depth in zip(widths, depths):
            self.stages.append(nn.Sequential(Separable(inputs, width, 2), *(Separable(width, width)
                                                                           for _ in range(depth))))
            inputs = width
        # The finest stage joins the pyramid as it is: a 1x1 convolution there costs as much as a whole coarse stage.
        assert widths[0] == pyramid
        self.lateral = nn.ModuleList(nn.Conv2d(width, pyramid, 1) for width in widths[1:])
        self.smooth = nn.ModuleList(Separable(pyramid, pyramid) for _ in widths[1:])
        self.head = Separable(pyramid, pyramid)
        self.heat = nn.Conv2d(pyramid, classes, 1)
        self.distances = nn.Conv2d(pyramid, 4, 1)
        self.box_scale = BOX_SCALE
        nn.init.constant_(self.heat.bias, -4.0)  # rare objects: begin with "nothing here"
        nn.init.normal_(self.distances.weight, std=0.01)
        nn.init.constant_(self.distances.bias, 0.25)

    def raw(self, image):
        """Heat before the sigmoid and distances in cells before they are cut at zero."""
        levels = []
        x = self.stem(image)
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        top = self.smooth[-1](self.lateral[-1](levels[-1]))
        for i in range(len(self.lateral) - 2, -1, -1):
            top = self.smooth[i](self.lateral[i](levels[i + 1]) + F.interpolate(top, scale_factor=2.0, mode="nearest"))
        top = self.head(levels[0] + F.interpolate(top, scale_factor=2.0, mode="nearest"))
        distances = self.distances(top)
        return self.heat(top), distances * self.box_scale if self.box_scale else distances

    def forward(self, image):
        heat, distances = self.raw(image)
        return torch.sigmoid(heat), F.relu(distances)


def deployed(network):
    """A copy for export: the box scale folded into the last layer."""
    network = copy.deepcopy(network).eval()
    with torch.no_grad():
        network.distances.weight *= BOX_SCALE
        network.distances.bias *= BOX_SCALE
    network.box_scale = None
    return network


def work(network, height, width):
    """Floating-point operations of one picture: two per multiplication of every convolution."""
    total, hooks = 0, []

    def count(layer, _, output):
        nonlocal total
        taps = layer.in_channels // layer.groups * layer.kernel_size[0] * layer.kernel_size[1]
        total += 2 * taps * output.numel() // output.shape[0]

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            hooks.append(layer.register_forward_hook(count))
    training = network.training
    network.eval()
    with torch.no_grad():
        network(torch.zeros(1, 3, height, width))
    network.train(training)
    for hook in hooks:
        hook.remove()
    return total
