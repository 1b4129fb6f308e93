"""Slabs of many heaps: what all ranks want is added up, then each rank runs every heap alike."""
import torch
import torch.distributed as dist


def operation(want: torch.Tensor, offset: torch.Tensor) -> None:
    """want, offset: [heaps, 16], uint8."""
    sums = want.int()
    dist.all_reduce(sums)
    need, life = 1 + sums % 8, 1 + sums % 256 // 8 % 16
    heaps = want.shape[0]
    until = torch.zeros(heaps, 32, dtype=torch.int32, device=want.device)  # a slab is free from then on
    slabs = torch.arange(32, device=want.device)
    for i in range(16):
        size = need[:, i, None]
        free = (until <= i).int()
        before = torch.nn.functional.pad(free.cumsum(1), (1, 0))  # free slabs below each place
        end = (slabs + size).clamp(max=32)
        fits = (before.gather(1, end) - before[:, :32] == size) & (slabs + size <= 32)
        found, place = fits.any(1), fits.int().argmax(1)
        offset[:, i] = torch.where(found, place, 255).to(torch.uint8)
        taken = (slabs >= place[:, None]) & (slabs < place[:, None] + size) & found[:, None]
        until = torch.where(taken, i + life[:, i, None], until)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for heaps in (64, 256):
        want = torch.randint(0, 256, (heaps, 16), dtype=torch.uint8, device="cuda")
        operation(want, torch.empty_like(want))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
