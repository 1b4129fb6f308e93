"""Attention outputs from head shards back to sequence shards, with a padded end of the sequence."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor) -> torch.Tensor:
    world, (tokens, heads, dim) = dist.get_world_size(), inp.shape
    part = -(-tokens // world)
    sent = torch.zeros(world * part, heads, dim, dtype=inp.dtype, device=inp.device)
    sent[:tokens] = inp
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    return received.reshape(world, part, heads, dim).transpose(0, 1).reshape(part, world * heads, dim)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for tokens in (121, 501):
        operation(torch.randn(tokens, 2, 128, dtype=torch.bfloat16, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
