"""Causal depthwise convolution; rank r has chunks r and 2 * world - 1 - r of the sequence."""
import torch
import torch.distributed as dist
import torch.nn.functional as F


def operation(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    rank, world, (_, rows, channels), taps = dist.get_rank(), dist.get_world_size(), x.shape, w.shape[0]
    tails = x[:, rows - taps + 1 :].contiguous()
    halo = torch.zeros_like(tails)
    ops = []
    if rank + 1 < world:
        ops += [dist.P2POp(dist.isend, tails[0], rank + 1), dist.P2POp(dist.irecv, halo[1], rank + 1)]
    else:
        halo[1] = tails[0]
    if rank > 0:
        ops += [dist.P2POp(dist.isend, tails[1], rank - 1), dist.P2POp(dist.irecv, halo[0], rank - 1)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    padded = torch.cat([halo, x], dim=1).transpose(1, 2)
    return F.conv1d(padded, w.flip(0).t().unsqueeze(1), groups=channels).transpose(1, 2)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows, channels, taps in ((32, 32, 4), (256, 64, 4)):
        operation(torch.randn(2, rows, channels, device="cuda"), torch.randn(taps, channels, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
