"""Rounds of tokens: each rank's token needs all tokens of the round before."""
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


def operation(keys: torch.Tensor, out: torch.Tensor) -> None:
    """keys: [rounds, 32], out: [rounds, world]; words of 32 bits in int64."""
    weights = 2 * torch.arange(dist.get_world_size(), device=keys.device) + 1
    before = torch.zeros(1, dtype=torch.int64, device=keys.device)
    for i in range(keys.shape[0]):
        token = (mix((before + keys[i]) & MASK).sum() & MASK).reshape(1)
        dist.all_gather_into_tensor(out[i], token)
        before = ((out[i] * weights).sum() & MASK).reshape(1)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rounds in (16, 128):
        keys = torch.randint(0, 2**32, (rounds, 32), dtype=torch.int64, device="cuda")
        shape = (rounds, dist.get_world_size())
        operation(keys, torch.empty(shape, dtype=torch.int64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
