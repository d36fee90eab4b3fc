"""What the networks share: units of convolution, BatchNorm and activation, random weights, statistics, pictures."""
import torch
from torch import nn
from torch.nn import functional as F

ACTIVATIONS = {"relu": nn.ReLU, "relu6": nn.ReLU6, "silu": nn.SiLU, "hardswish": nn.Hardswish,
               "leaky": lambda: nn.LeakyReLU(0.1), "none": nn.Identity}


BRANCH = 0.4


def ends_branch(layer):
    """The layer with weights that ends the branch beside a shortcut. Training leaves these small; at full scale each
    shortcut would double the variance, and a deep network would amplify its own rounding."""
    layer.scale = BRANCH
    return layer


def unit(inputs, outputs, size=1, stride=1, groups=1, act="relu", eps=1e-5, branch=False):
    """Convolution (padding of half its size), BatchNorm, activation."""
    norm = nn.BatchNorm2d(outputs, eps=eps)
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
                         ends_branch(norm) if branch else norm, ACTIVATIONS[act]())


class Squeeze(nn.Module):
    """Squeeze-and-excitation (Hu et al. 2017, arXiv:1709.01507)."""

    def __init__(self, channels, inner, act, gate):
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)
        self.act, self.gate = ACTIVATIONS[act](), gate

    def forward(self, x):
        return x * self.gate(self.up(self.act(self.down(F.adaptive_avg_pool2d(x, 1)))))


def randomise(network, seed):
    """Random weights that keep variance, and BatchNorms as training leaves them: neither scale 1 nor shift 0."""
    torch.manual_seed(seed)
    for module in network.modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            weight = module.weight
            fan = weight[0].numel() if not isinstance(module, nn.ConvTranspose2d) else weight.shape[0]
            nn.init.normal_(weight, std=fan**-0.5 * getattr(module, "scale", 1.0))
            if module.bias is not None:
                nn.init.normal_(module.bias, std=0.1)
        elif isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)):
            scale = getattr(module, "scale", 1.0)
            nn.init.uniform_(module.weight, 0.8 * scale, 1.2 * scale)
            nn.init.normal_(module.bias, std=0.2 * scale)


def settle(network, inputs):
    """Every BatchNorm takes the mean and variance of what reaches it, so that what leaves it has unit variance (times its
    scale). One pass: in training mode a layer already sees normalised inputs."""
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None  # the plain mean over passes, so far none
        norm.reset_running_stats()
    network.train()
    with torch.no_grad():
        network(*inputs)
    network.eval()
    for norm in norms:
        norm.momentum = 0.1


def pictures(count, channels, height, width, seed):
    """Smooth shapes with edges and a little noise, about zero mean and unit variance, different from each other: white
    noise would average out in pooled networks and tell no two inputs apart."""
    generator = torch.Generator().manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, generator=generator)
    picture = 0.1 * normal(count, channels, height, width) + 0.5 * normal(count, channels, 1, 1)
    for cells in (3, 7, 17):
        layer = F.interpolate(normal(count, channels, cells, cells), (height, width), mode="bilinear")
        picture += 0.7 * torch.where(layer > 0.3, layer + 0.5, layer)
    return picture
