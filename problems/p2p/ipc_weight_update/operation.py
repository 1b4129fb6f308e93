"""Versions of a matrix, trained by columns and served by rows; each version answers all queries before the next."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, x: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [versions, world * rows, part]; x: [queries, world * part]; out: [versions, queries, rows]; int64,
    in which words of 32 bits are kept."""
    world, (rows, part) = dist.get_world_size(), (out.shape[2], inp.shape[2])
    weights = torch.empty(world, rows, part, dtype=inp.dtype, device=inp.device)
    for version, trained in enumerate(inp):
        dist.all_to_all_single(weights, trained.contiguous())
        served = weights.transpose(0, 1).reshape(rows, world * part)
        # By halves, so that no product overflows.
        low = (served & 0xFFFF)[None] * x[:, None]
        high = ((served >> 16)[None] * x[:, None] & 0xFFFF) << 16
        out[version] = ((low & 0xFFFFFFFF) + high).sum(2) & 0xFFFFFFFF


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, part, queries = dist.get_world_size(), 48, 4
    for rows in (4, 8):
        inp = torch.randint(0, 2**32, (4, world * rows, part), dtype=torch.int64, device="cuda")
        x = torch.randint(0, 2**32, (queries, world * part), dtype=torch.int64, device="cuda")
        dist.broadcast(x, 0)
        operation(inp, x, torch.empty(4, queries, rows, dtype=torch.int64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
