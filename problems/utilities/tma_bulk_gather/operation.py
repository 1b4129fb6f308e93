"""Ragged gather: segments of all ranks' pools, each to the beginning of a row."""
import torch
import torch.distributed as dist


def operation(pool: torch.Tensor, source: torch.Tensor, start: torch.Tensor, length: torch.Tensor,
              out: torch.Tensor) -> None:
    pools = torch.empty((dist.get_world_size(), pool.numel()), dtype=pool.dtype, device=pool.device)
    dist.all_gather_into_tensor(pools, pool)
    column = torch.arange(out.shape[1], device=pool.device)
    place = (start[:, None] + column).clamp(max=pool.numel() - 1)
    asked = column < length[:, None]
    out[asked] = pools[source[:, None], place][asked]  # all else stays


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for m, words, width in ((64, 16384, 512), (256, 65536, 512)):
        draw = lambda limit: torch.randint(limit, (m,), device="cuda")
        pool = torch.randint(2**31, (words,), dtype=torch.int32, device="cuda")
        out = torch.zeros((m, width), dtype=torch.int32, device="cuda")
        operation(pool, draw(dist.get_world_size()), draw(words - width + 1), draw(width + 1), out)
    dist.destroy_process_group()
