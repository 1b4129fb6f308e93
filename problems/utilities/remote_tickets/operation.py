"""Tickets of all ranks: each rank's begin where those of the ranks before it end."""
import torch
import torch.distributed as dist

MASK = 0xFFFFFFFF


def mix(x: torch.Tensor) -> torch.Tensor:
    """Words of 32 bits, kept in int64. Products are made of halves, so that nothing overflows."""

    def times(a: torch.Tensor, b: int) -> torch.Tensor:
        return ((a >> 16) * b % 65536 * 65536 + (a & 0xFFFF) * b) & MASK

    x = x ^ (x >> 16)
    x = times(x, 0x85EBCA6B)
    x = x ^ (x >> 13)
    x = times(x, 0xC2B2AE35)
    return x ^ (x >> 16)


def operation(keys: torch.Tensor, first: torch.Tensor, total: torch.Tensor) -> None:
    """keys, first: [rounds, requests], total: [rounds]; words of 32 bits in int64."""
    rank, world = dist.get_rank(), dist.get_world_size()
    sums = torch.empty(world, dtype=torch.int64, device=keys.device)
    before = torch.zeros(1, dtype=torch.int64, device=keys.device)
    for i in range(keys.shape[0]):
        need = 1 + (mix((keys[i] + before) & MASK) & 15)
        dist.all_gather_into_tensor(sums, need.sum().reshape(1))
        first[i] = sums[:rank].sum() + need.cumsum(0) - need
        before = sums.sum().reshape(1)
        total[i] = before[0]


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rounds in (8, 64):
        keys = torch.randint(0, 2**32, (rounds, 128), dtype=torch.int64, device="cuda")
        operation(keys, torch.empty_like(keys), torch.empty_like(keys[:, 0]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
