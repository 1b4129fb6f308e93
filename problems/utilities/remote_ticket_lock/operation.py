"""Sections of all ranks on one state; here the ranks take turns in their order."""
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


def operation(keys: torch.Tensor, place: torch.Tensor, seen: torch.Tensor) -> None:
    """keys: [rounds, 4, 32], place: [rounds], seen: [rounds, 32]; words of 32 bits in int64."""
    rank, world = dist.get_rank(), dist.get_world_size()
    state = torch.zeros(32, dtype=torch.int64, device=keys.device)
    for i in range(keys.shape[0]):
        place[i] = i * world + rank
        for turn in range(world):
            if turn == rank:
                seen[i] = state
                state = (state.roll(-1) + mix((state + keys[i]) & MASK).sum(0)) & MASK
            dist.broadcast(state, src=turn)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rounds in (4, 24):
        keys = torch.randint(0, 2**32, (rounds, 4, 32), dtype=torch.int64, device="cuda")
        operation(keys, torch.empty_like(keys[:, 0, 0]), torch.empty_like(keys[:, 0]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
